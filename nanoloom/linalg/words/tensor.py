"""A tensor while a graph is lowered: shape, element type, and where it comes from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nanoloom.mlir import ir

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Tensor:
    """An MLIR tensor value, a compile-time constant, or both.

    shape: static.  dtype: numpy's (bfloat16 of ml_dtypes), which says signedness too.
    load: gives a constant's array (lazily: weights stay mapped in their file).
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    value: ir.Value | None = None
    load: Callable[[], Array] | None = None
    name: str = ""

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def is_constant(self) -> bool:
        return self.load is not None

    def array(self) -> Array:
        """The constant's array; ask `is_constant` first."""
        assert self.load is not None, f"{self.name} is not a constant"
        return self.load()


def constant_tensor(array: Array, name: str = "") -> Tensor:
    """An array known while compiling."""
    return Tensor(array.shape, array.dtype, None, lambda: array, name)


def derived(
    x: Tensor,
    change: str,
    shape: tuple[int, ...],
    dtype: np.dtype,
    make: Callable[[Array], Array],
) -> Tensor:
    """A constant computed from the constant x when it is packed: make(x's array).

    change: names what was done, with all its parameters, so that the same constant
    derived twice in the same way is one parameter of the program.
    """
    load = x.load
    assert load is not None, f"{x.name} is not a constant"
    name = f"{x.name}.{change}" if x.name else ""
    return Tensor(shape, dtype, None, lambda: make(load()), name)
