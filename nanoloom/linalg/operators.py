"""Every operator that nanoloom lowers itself, by family, in one table."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nanoloom.linalg import elementwise, matmul
from nanoloom.linalg.builder import Builder
from nanoloom.linalg.node import Node
from nanoloom.linalg.tensor import Tensor

Lower = Callable[[Builder, Node], Tensor | Sequence[Tensor | None]]

OPERATORS: dict[str, Lower] = {
    **elementwise.OPERATORS,
    **matmul.OPERATORS,
}
