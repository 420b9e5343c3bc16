"""Every operator that nanoloom lowers itself, by family, in one table."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nanoloom.linalg import (
    activations,
    arguments,
    casting,
    comparison,
    elementwise,
    filling,
    gather,
    matmul,
    reductions,
    shaping,
    softmax,
)
from nanoloom.linalg.builder import Builder
from nanoloom.linalg.node import Node
from nanoloom.linalg.tensor import Tensor

Lower = Callable[[Builder, Node], Tensor | Sequence[Tensor | None]]

OPERATORS: dict[str, Lower] = {
    **activations.OPERATORS,
    **arguments.OPERATORS,
    **casting.OPERATORS,
    **comparison.OPERATORS,
    **elementwise.OPERATORS,
    **filling.OPERATORS,
    **gather.OPERATORS,
    **matmul.OPERATORS,
    **reductions.OPERATORS,
    **shaping.OPERATORS,
    **softmax.OPERATORS,
}
