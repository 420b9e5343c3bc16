"""The width of a vector, fixed or a multiple of vscale, as MLIR's types and values."""

from __future__ import annotations

from nanoloom.ir.access import index, multiply
from nanoloom.ir.mlir import arith, ir, vector
from nanoloom.nest.extent import Lanes


def vector_type(lanes: Lanes, element: ir.Type) -> ir.VectorType:
    """vector<4xf32> or vector<[4]xf32>."""
    return ir.VectorType.get([lanes.count], element, scalable=[lanes.scalable])


def is_scalable(kind: ir.Type) -> bool:
    """Whether a type is a vector whose width is not known while compiling."""
    return isinstance(kind, ir.VectorType) and any(kind.scalable_dims)


def elements(lanes: Lanes, vectors: int = 1) -> int | ir.Value:
    """Of so many vectors: a number, or one that the machine tells."""
    count = lanes.count * vectors
    if not lanes.scalable or not count:
        return count
    return multiply(vector.VectorScaleOp().result, index(count))


def as_index(number: int | ir.Value) -> ir.Value:
    return index(number) if isinstance(number, int) else number


def filler(element: ir.Type) -> ir.Value:
    """What masked lanes hold: 1, which divides and is divided without a trap."""
    one = 1.0 if isinstance(element, ir.FloatType) else 1
    return arith.constant(element, one)
