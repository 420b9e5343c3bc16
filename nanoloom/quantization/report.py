"""What became of each layer of a quantized model: how, how exact, how fast."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

INTEGERS = "integers"
FLOAT_RESULT = "integers, result in floats"
FLOATS = "floats"
WEIGHTS = "weights of {} bits"


@dataclass(frozen=True)
class LayerReport:
    """A layer.  computed: one of the words above; reason: why it is in floats.

    error: |got - right| / |right| of its result, where it alone is quantized; None if
    it was not compared.  float_seconds, seconds: of the layer by itself before and
    after, medians here; None if it was not timed.
    """

    node: str
    operator: str
    computed: str
    reason: str = ""
    error: float | None = None
    float_seconds: float | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class QuantizationReport:
    """What a quantized model is worth.

    outputs: the relative error of each, |got - right| / |right| over all samples; the
    part that differs, of integers.  random: whether samples were made up: then errors
    say nothing about data.  float_seconds, seconds: of the whole models, here.
    float_bytes, bytes: of the weights.
    """

    layers: tuple[LayerReport, ...]
    outputs: Mapping[str, float] = field(default_factory=dict[str, float])
    max_error: float = 0.0
    samples: int = 0
    random: bool = False
    threads: int = 1
    float_bytes: int = 0
    bytes: int = 0
    float_seconds: float | None = None
    seconds: float | None = None

    @property
    def quantized(self) -> tuple[LayerReport, ...]:
        return tuple(x for x in self.layers if x.computed != FLOATS)

    def as_dict(self) -> dict[str, Any]:
        """For JSON: infinity, which it lacks, as text."""
        found = asdict(self)
        found["outputs"] = {k: plain(v) for k, v in self.outputs.items()}
        found["max_error"] = plain(self.max_error)
        found["layers"] = [
            {k: plain(v) for k, v in asdict(x).items()} for x in self.layers
        ]
        return found


def plain(value: Any) -> Any:
    is_odd = isinstance(value, float) and not math.isfinite(value)
    return str(value) if is_odd else value
