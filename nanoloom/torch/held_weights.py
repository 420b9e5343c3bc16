"""Whether weights are those that a program was compiled with."""

from __future__ import annotations

from collections.abc import Sequence

import torch  # pyright: ignore[reportMissingImports]

State = tuple[tuple[int, int], ...]


def state(tensors: Sequence[torch.Tensor]) -> State:
    """Where each tensor is, and how often torch has seen it change in place.

    What goes past torch's counters is not seen: changes through `.data` or numpy, and
    those of inference tensors, which have no counter.
    """
    try:
        return tuple([(t.data_ptr(), t._version) for t in tensors])
    except RuntimeError:  # an inference tensor among them
        return tuple([(t.data_ptr(), version(t)) for t in tensors])


def version(tensor: torch.Tensor) -> int:
    return -1 if tensor.is_inference() else tensor._version
