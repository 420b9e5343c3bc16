"""The models of the benchmarks, with random weights: what and where they are made.

`MODELS` and `seeded_inputs` need only numpy; `write` (in `export`) needs PyTorch, and
transformers for the networks taken from there.
"""

from benchmarks.models.small import SMALL, SmallModel
from benchmarks.models.table import MODELS, Input, Model, Variant, seeded_inputs

__all__ = [
    "MODELS",
    "SMALL",
    "Input",
    "Model",
    "SmallModel",
    "Variant",
    "seeded_inputs",
]
