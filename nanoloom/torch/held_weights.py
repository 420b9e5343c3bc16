"""Whether weights are those that a program was compiled with."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

import torch

State = tuple[list[int], list[int]]
# Called by map: a loop of Python takes three times as long over hundreds of weights.
_start_of = torch.Tensor.data_ptr
_changes_of = attrgetter("_version")


def state(tensors: Sequence[torch.Tensor]) -> State:
    """Where each tensor is, and how often torch has seen it change in place.

    What goes past torch's counters is not seen: changes through `.data` or numpy, and
    those of inference tensors, which have no counter.
    """
    starts = list(map(_start_of, tensors))
    try:
        return starts, list(map(_changes_of, tensors))
    except RuntimeError:  # an inference tensor among them
        return starts, [-1 if t.is_inference() else t._version for t in tensors]
