"""A `linalg.generic` as it is made, or made again: operands, maps, loops, a body."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from nanoloom.ir.linalg_query import Op
from nanoloom.ir.mlir import ir, linalg

Words = Mapping[str, ir.Attribute]
NOTHING: Words = MappingProxyType({})
MAPS, KINDS, COUNTS = "indexing_maps", "iterator_types", "operandSegmentSizes"


def make_generic(
    inputs: Sequence[ir.Value],
    outputs: Sequence[ir.Value],
    indexings: Iterable[ir.AffineMap],
    kinds: Iterable[str] | ir.Attribute,
    words: Words = NOTHING,
) -> Op:
    """A generic whose body has arguments, and nothing else yet.

    outputs: tensors, which there is a result for each of, or buffers.  indexings: of
    the inputs, then of the outputs.  kinds: of the loops, "parallel" or "reduction".
    """
    tensors = [x.type for x in outputs if isinstance(x.type, ir.RankedTensorType)]
    loops = kinds if isinstance(kinds, ir.Attribute) else kinds_of(kinds)
    made = linalg.GenericOp(
        tensors, list(inputs), list(outputs), maps_of(indexings), loops
    )
    for name, word in words.items():
        made.operation.attributes[name] = word
    elements = [element_type(x.type) for x in (*inputs, *outputs)]
    made.regions[0].blocks.append(*elements)
    return made


def remade(
    op: Op,
    operands: Sequence[ir.Value],
    indexings: Iterable[ir.AffineMap],
    kinds: Sequence[str] | None = None,
) -> ir.Value:
    """A generic of one result again, on other operands, of the same types.

    kinds: of its loops, None for as they are.
    """
    old = op.operation
    attributes = {
        MAPS: maps_of(indexings),
        KINDS: old.attributes[KINDS] if kinds is None else kinds_of(kinds),
        COUNTS: old.attributes[COUNTS],
    }
    made = ir.Operation.create(
        "linalg.generic", [operands[-1].type], list(operands), attributes, regions=1
    )
    copied = old.clone()
    copied.regions[0].blocks[0].append_to(made.regions[0])
    copied.erase()
    return made.results[0]


def set_maps(op: Op, indexings: Iterable[ir.AffineMap]) -> None:
    op.operation.attributes[MAPS] = maps_of(indexings)


def set_loops(op: Op, indexings: Iterable[ir.AffineMap], kept: Iterable[int]) -> None:
    """Other maps, and of the loops those that are left, in this order."""
    kinds = op.operation.attributes[KINDS]
    set_maps(op, indexings)
    op.operation.attributes[KINDS] = ir.ArrayAttr.get([kinds[n] for n in kept])  # type: ignore[index] - MLIR's stubs know no kinds of attributes


def copy_body(ops: Iterable[Op], mapping: dict[ir.Value, ir.Value]) -> None:
    """Operations again, on other values; mapping: of those, and of what is made."""
    for op in ops:
        made = op.operation.clone()
        for place, value in enumerate(op.operation.operands):
            made.operands[place] = mapping.get(value, value)
        mapping |= dict(zip(op.operation.results, made.results, strict=True))


def compose(outer: ir.AffineMap, inner: ir.AffineMap) -> ir.AffineMap:
    """outer after inner: the source's index for the reader's loop index."""
    return ir.AffineMap.get(inner.n_dims, 0, [e.compose(inner) for e in outer.results])


def maps_of(indexings: Iterable[ir.AffineMap]) -> ir.ArrayAttr:
    return ir.ArrayAttr.get([ir.AffineMapAttr.get(m) for m in indexings])


def kinds_of(words: Iterable[str]) -> ir.ArrayAttr:
    kinds = [ir.Attribute.parse(f"#linalg.iterator_type<{word}>") for word in words]
    return ir.ArrayAttr.get(kinds)


def element_type(kind: ir.Type) -> ir.Type:
    """Of a tensor, a buffer or a vector; a scalar's own type."""
    return kind.element_type if isinstance(kind, ir.ShapedType) else kind
