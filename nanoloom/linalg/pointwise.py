"""A linalg.generic without a reduction, for stages behind this one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nanoloom.mlir import ir, linalg


def pointwise(
    sources: Sequence[ir.Value],
    target: ir.Value,
    indexings: Sequence[ir.AffineMap],
    body: Callable[..., ir.Value],
) -> ir.Value:
    """target[i...] = body(sources at their maps), target on tensors or a buffer.

    indexings: of the sources; the target is written at its own indices.  Gives the
    result on tensors, the buffer that was written.
    """
    kind = ir.ShapedType(target.type)
    on_tensors = isinstance(target.type, ir.RankedTensorType)
    every = [*indexings, ir.AffineMap.get_identity(kind.rank)]
    parallel = ir.Attribute.parse("#linalg.iterator_type<parallel>")
    made = linalg.GenericOp(
        [target.type] if on_tensors else [],
        list(sources),
        [target],
        ir.ArrayAttr.get([ir.AffineMapAttr.get(m) for m in every]),
        ir.ArrayAttr.get([parallel] * kind.rank),
    )
    elements = [element_of(value) for value in (*sources, target)]
    block = made.regions[0].blocks.append(*elements)
    with ir.InsertionPoint(block):
        linalg.YieldOp([body(*list(block.arguments)[:-1])])
    return made.results[0] if on_tensors else target


def element_of(value: ir.Value) -> ir.Type:
    """Of a tensor or buffer; a scalar's own type."""
    if isinstance(value.type, (ir.RankedTensorType, ir.MemRefType)):
        return value.type.element_type
    return value.type
