"""A tensor while a graph is lowered: shape, element type, and where it comes from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nanoloom.ir.mlir import ir
from nanoloom.weights.chunked_conversion import Array
from nanoloom.weights.weight import Derivation, Weight, weight_of


@dataclass(frozen=True, eq=False)
class Tensor:
    """An MLIR tensor value, a compile-time constant, or both.

    shape: static.  dtype: numpy's (bfloat16 of ml_dtypes), which says signedness too.
    weight: a constant's array, not read before it is wanted.
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    value: ir.Value | None = None
    weight: Weight | None = None
    name: str = ""

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def is_constant(self) -> bool:
        return self.weight is not None

    def array(self) -> Array:
        """The constant's array; ask `is_constant` first."""
        assert self.weight is not None, f"{self.name} is not a constant"
        return self.weight.array()


def constant_tensor(array: Array, name: str = "") -> Tensor:
    """An array known while compiling."""
    return constant(weight_of(array, name))


def constant(weight: Weight) -> Tensor:
    """A weight that has not entered the IR."""
    return Tensor(weight.shape, weight.dtype, None, weight, weight.name)


def changed(x: Tensor, change: Derivation) -> Tensor:
    """What is made of the constant x when it is written."""
    assert x.weight is not None, f"{x.name} is not a constant"
    return constant(x.weight.then(change))


__all__ = ["Array", "Tensor", "changed", "constant", "constant_tensor"]
