"""What programs that were cut for samples of the sizes must have in common."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nanoloom.kernels.program import Program, Word
from nanoloom.sizes.differs import Differs
from nanoloom.weights.weight import Weight


def require_same(programs: Sequence[Program]) -> None:
    """Raise Differs where calls, constants or checks depend on the sizes."""
    first = programs[0]
    if len({(len(p.calls), len(p.repeats)) for p in programs}) > 1:
        raise Differs("numbers of calls")
    if any(p.parameters != first.parameters for p in programs):
        require_equal([p.parameters for p in programs])
    if len({tuple(named(word) for word in p.checks) for p in programs}) > 1:
        raise Differs("where indices are looked at")


def named(word: Word) -> tuple[object, ...]:
    """What of a check no size decides."""
    limits = word.limits
    return limits.where, limits.what, limits.low < 0, word.number


def require_equal(rows: Sequence[tuple[Weight, ...]]) -> None:
    """Raise Differs for constants that depend on the sizes."""
    if len({len(row) for row in rows}) > 1:
        raise Differs("numbers of constants")
    for weights in zip(*rows, strict=True):
        first = weights[0]
        for other in weights[1:]:
            if first == other:
                continue
            name = first.source.name or "a constant"
            if (first.shape, first.dtype) != (other.shape, other.dtype):
                raise Differs(f"{name} depends on sizes")
            if not np.array_equal(bytes_of(first), bytes_of(other)):
                raise Differs(f"{name} depends on sizes")


def bytes_of(weight: Weight) -> np.ndarray:
    return np.frombuffer(weight.array().tobytes(), np.uint8)
