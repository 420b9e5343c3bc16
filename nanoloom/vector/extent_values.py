"""The numbers that an extent can be, where it is known only as it runs.

    for i in 0..131 by 26: min(131 - i, 26)   ->   26, and at the end 1

Blocks are alike but for the last one: what is left of them has one size, not any.
"""

from __future__ import annotations

from nanoloom.ir.access import coefficient, constant_of
from nanoloom.ir.mlir import ir, made_by
from nanoloom.linalg.builder.tensor_slices import bounds_of
from nanoloom.vector.nanokernel.tile.extents import dynamic_size


def possible_values(extent: ir.Value) -> frozenset[int]:
    """All numbers that an extent can be, none if they are not known."""
    known = constant_of(extent)
    if known is not None:
        return frozenset({known})
    owner = made_by(extent, "memref.dim", "affine.min")
    if owner is None:
        return frozenset()
    return of_buffer(owner) if owner.name == "memref.dim" else of_block(owner)


def of_buffer(dim: ir.Operation) -> frozenset[int]:
    """Of a part of a buffer, as the part was taken."""
    buffer, place = dim.operands
    number, part = constant_of(place), made_by(buffer, "memref.subview")
    if number is None or part is None:
        return frozenset()
    kind, (_, sizes) = ir.MemRefType(buffer.type), bounds_of(part)
    if not kind.is_dynamic_dim(number) or len(sizes) != kind.rank:
        return frozenset()
    return possible_values(dynamic_size(part, number))


def of_block(smaller: ir.Operation) -> frozenset[int]:
    """min(all - i, size), where i goes from 0 in steps of size."""
    indexing: ir.AffineMap = smaller.attributes["map"].value  # type: ignore[attr-defined]
    operands = list(smaller.operands)
    results = list(indexing.results)
    numbers = [x for x in results if isinstance(x, ir.AffineConstantExpr)]
    others = [x for x in results if not isinstance(x, ir.AffineConstantExpr)]
    if len(numbers) != 1 or len(others) != 1 or indexing.n_dims != 1:
        return frozenset()
    size, left = numbers[0].value, others[0]
    if coefficient(left, 0) != -1 or steps_of(operands[0]) != size:
        return frozenset()
    made: set[int] = set()
    for every in whole(left, operands[1:]):
        made |= {size} if every >= size else set()
        made |= {every % size} - {0}
    return frozenset(made)


def whole(left: ir.AffineExpr, symbols: list[ir.Value]) -> frozenset[int]:
    """What `all` can be in all - i."""
    if not isinstance(left, ir.AffineAddExpr):
        return frozenset()
    last = left.rhs
    if isinstance(last, ir.AffineConstantExpr):
        return frozenset({last.value})
    if isinstance(last, ir.AffineSymbolExpr):
        return possible_values(symbols[last.position])
    return frozenset()


def steps_of(place: ir.Value) -> int | None:
    """The distance between the places that a loop's variable goes through from 0."""
    owner = place.owner
    if isinstance(owner, ir.Block):
        loop = owner.owner
        if loop.name != "scf.for" or place != owner.arguments[0]:
            return None
        begin, _, step = list(loop.operands)[:3]
        return constant_of(step) if constant_of(begin) == 0 else None
    return constant_of(owner.operands[1]) if owner.name == "arith.muli" else None
