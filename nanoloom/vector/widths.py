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


def element_of(kind: ir.Type) -> ir.Type:
    return kind.element_type if isinstance(kind, ir.VectorType) else kind


def with_element(kind: ir.Type, element: ir.Type) -> ir.Type:
    """`kind` with another element type: same shape, same scalable dimensions."""
    if not isinstance(kind, ir.VectorType):
        return element
    return ir.VectorType.get(kind.shape, element, scalable=kind.scalable_dims)


def filled(kind: ir.Type, number: float) -> ir.Value:
    """A number, or a vector of nothing else."""
    element = element_of(kind)
    value = float(number) if isinstance(element, ir.FloatType) else int(number)
    one = arith.constant(element, value)
    return vector.broadcast(kind, one) if isinstance(kind, ir.VectorType) else one


def filler(element: ir.Type) -> ir.Value:
    """What masked lanes hold: 1, which divides and is divided without a trap."""
    return filled(element, 1)
