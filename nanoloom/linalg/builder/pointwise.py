"""A `linalg.generic` without a reduction, from values: what later stages insert."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from nanoloom.ir.mlir import ir, linalg

Body = Callable[..., ir.Value]
NOTHING: Mapping[str, ir.Attribute] = MappingProxyType({})


def pointwise(
    sources: Sequence[ir.Value],
    target: ir.Value,
    body: Body,
    reading: Sequence[ir.AffineMap] = (),
    writing: ir.AffineMap | None = None,
    words: Mapping[str, ir.Attribute] = NOTHING,
) -> ir.Value:
    """target[writing(i...)] = body(sources[reading(i...)]...)

    All maps are identities by default.  words: attributes of the
    operation.  Gives the tensor that is made, the target itself where it is a buffer.
    """
    rank = reading[0].n_dims if reading else ir.ShapedType(target.type).rank
    same = ir.AffineMap.get_identity(rank)
    indexings = [*(reading or [same] * len(sources)), writing or same]
    parallel = ir.Attribute.parse("#linalg.iterator_type<parallel>")
    on_tensors = isinstance(target.type, ir.RankedTensorType)
    made = linalg.GenericOp(
        [target.type] if on_tensors else [],
        list(sources),
        [target],
        ir.ArrayAttr.get([ir.AffineMapAttr.get(m) for m in indexings]),
        ir.ArrayAttr.get([parallel] * rank),
    )
    for name, word in words.items():
        made.operation.attributes[name] = word
    elements = [element_type(x.type) for x in (*sources, target)]
    block = made.regions[0].blocks.append(*elements)
    with ir.InsertionPoint(block):
        linalg.YieldOp([body(*list(block.arguments)[: len(sources)])])
    return made.results[0] if on_tensors else target


def itself(value: ir.Value) -> ir.Value:
    """The body of a copy."""
    return value


def element_type(kind: ir.Type) -> ir.Type:
    """Of a tensor, a buffer or a vector; a scalar's own type."""
    return kind.element_type if isinstance(kind, ir.ShapedType) else kind
