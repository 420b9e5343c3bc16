"""Conversions of floats by operations on their bits: what they have in common."""

from __future__ import annotations

from collections.abc import Callable

from nanoloom.mlir import arith, ir, named, vector


def replace_conversions(
    module: ir.Module,
    name: str,
    given: ir.Type,
    wanted: ir.Type,
    convert: Callable[[ir.Value], ir.Value],
) -> None:
    """Replace every operation of this name between two types, of vectors too."""
    for op in named(module, name):
        (source,), result = op.operation.operands, op.operation.results[0]
        if (element(source.type), element(result.type)) == (given, wanted):
            with ir.InsertionPoint(op), op.operation.location:
                result.replace_all_uses_with(convert(source))
            op.operation.erase()


def broadcast_like(kind: ir.Type, number: float) -> ir.Value:
    """A number, or a vector of nothing else."""
    one = arith.constant(element(kind), number)
    return vector.broadcast(kind, one) if isinstance(kind, ir.VectorType) else one


def as_type(kind: ir.Type, value: ir.Value) -> ir.Value:
    """The same bits."""
    if isinstance(kind, ir.VectorType) and kind.rank:
        return vector.bitcast(kind, value)
    return arith.bitcast(kind, value)


def element(kind: ir.Type) -> ir.Type:
    return kind.element_type if isinstance(kind, ir.VectorType) else kind


def like(kind: ir.Type, made: ir.Type) -> ir.Type:
    """A scalar, or a vector of the same shape."""
    if not isinstance(kind, ir.VectorType):
        return made
    return ir.VectorType.get(kind.shape, made, scalable=kind.scalable_dims)
