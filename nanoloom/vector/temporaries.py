"""Temporaries whose extents are known only as they run take the room of the largest.

    t = alloc(min(m - i, 32)) : ? x 100 x f32   ->   part of 32 x 112 x f32

Their size is a constant, so that they are made once (scratch_memory.py) and not in
every tile.  Long rows begin with a cache line, so that no vector straddles two.
"""

from __future__ import annotations

from math import prod

from nanoloom.ir.access import function_around, index
from nanoloom.ir.mlir import ir, memref, named
from nanoloom.vector.dynamic_extents import most_size
from nanoloom.vector.nanokernel.tile.extents import most_number
from nanoloom.vector.subview import subview

LINE = 64  # bytes
# Rows at least so long are filled up, by a quarter at most: a bound of the memory that
# a temporary takes, no word.  No vector straddles two lines then, on any target.
LINES = 4
DYNAMIC = ir.ShapedType.get_dynamic_stride_or_offset()
ANY_ROWS = ("linalg.generic", "vector.transfer_read", "vector.transfer_write",
            "memref.load", "memref.store", "memref.dim", "memref.prefetch")  # fmt: skip


def bound_temporaries(module: ir.Module, vscale: int = 0) -> None:
    """Replace each allocation of bounded size by a part of a constant one.

    vscale: what that is at most on the target, 0 where nobody knows.
    """
    for op in named(module, "memref.alloc"):
        made = op.operation.results[0]
        sizes = list(op.operation.operands)
        kind, function = ir.MemRefType(made.type), function_around(op)
        extents = most_extents(kind, sizes, function, vscale)
        if extents is None:
            continue
        # Rows as far from each other as in the largest are for what is almost as large:
        # the widest vectors are none's.
        wide = vscale > 1 and extents != most_extents(kind, sizes, function, 0)
        loose = not wide and takes_any_rows(made)
        if not sizes and not (loose and filled_up(made, extents) != extents):
            continue
        with ir.InsertionPoint(op), op.operation.location:
            if loose:
                replace(made, rows_apart(made, extents, sizes))
            else:
                made.replace_all_uses_with(view(made, extents, sizes))
        op.operation.erase()


def most_extents(
    kind: ir.MemRefType, sizes: list[ir.Value], function: ir.Operation, vscale: int
) -> list[int] | None:
    """What each extent is at most, None if that is not known."""
    dynamic = iter(sizes)
    extents = [
        most_of(next(dynamic), function, vscale) if kind.is_dynamic_dim(place) else n
        for place, n in enumerate(kind.shape)
    ]
    known = [extent for extent in extents if extent is not None]
    return known if len(known) == kind.rank else None


def most_of(value: ir.Value, function: ir.Operation, vscale: int) -> int | None:
    most = most_number(value, vscale)
    return most_size(value, function) if most is None else most


def filled_up(made: ir.Value, extents: list[int]) -> list[int]:
    """The extents with long rows up to the end of a cache line."""
    line = LINE // bytes_of(ir.MemRefType(made.type).element_type)
    if prod(extents[:-1]) == 1 or extents[-1] < LINES * line:
        return extents
    *outer, row = extents
    return [*outer, -(-row // line) * line]


def takes_any_rows(value: ir.Value) -> bool:
    """Whether all that use a buffer work with rows at any distance."""
    for use in value.uses:
        user = use.owner.operation
        if user.name in ANY_ROWS:
            continue
        if user.name != "memref.subview" or not takes_any_rows(user.results[0]):
            return False
        if ir.MemRefType(user.results[0].type).rank != ir.MemRefType(value.type).rank:
            return False
    return True


def view(made: ir.Value, extents: list[int], sizes: list[ir.Value]) -> ir.Value:
    """The beginning of as many bytes as the largest takes, rows without gaps."""
    kind = ir.MemRefType(made.type)
    room = prod(extents) * bytes_of(kind.element_type)
    i8 = ir.IntegerType.get_signless(8)
    return memref.view(kind, aligned([room], i8), index(0), sizes)


def rows_apart(made: ir.Value, extents: list[int], sizes: list[ir.Value]) -> ir.Value:
    """The beginning of the largest: rows as far from each other as in that."""
    kind = ir.MemRefType(made.type)
    room = filled_up(made, extents)
    given = iter(sizes)
    here = [next(given) if n == DYNAMIC else n for n in kind.shape]
    return subview(aligned(room, kind.element_type), [0] * kind.rank, here)


def replace(old: ir.Value, new: ir.Value) -> None:
    """Let all that use a buffer use another with other distances between its rows."""
    strides, begin = ir.MemRefType(new.type).get_strides_and_offset()
    for use in list(old.uses):
        user = use.owner.operation
        if user.name != "memref.subview":
            user.operands[use.operand_number] = new
            continue
        kind = ir.MemRefType(user.results[0].type)
        places = list(user.attributes["static_offsets"])  # type: ignore[call-overload]
        steps = list(user.attributes["static_strides"])  # type: ignore[call-overload]
        known = DYNAMIC not in (begin, *places)
        offset = begin + sum(p * s for p, s in zip(places, strides, strict=True))
        apart = [step * s for step, s in zip(steps, strides, strict=True)]
        with ir.InsertionPoint(user), user.location:
            part = ir.Operation.create(
                user.name,
                [with_rows(kind, offset if known else DYNAMIC, apart)],
                [new, *list(user.operands)[1:]],
                {name: user.attributes[name] for name in user.attributes},
            )
        replace(user.results[0], part.results[0])
        user.erase()


def with_rows(kind: ir.MemRefType, offset: int, strides: list[int]) -> ir.MemRefType:
    layout = ir.StridedLayoutAttr.get(offset, strides)
    return ir.MemRefType.get(kind.shape, kind.element_type, layout)


def aligned(extents: list[int], element: ir.Type) -> ir.Value:
    return memref.alloc(ir.MemRefType.get(extents, element), [], [], alignment=LINE)


def bytes_of(element: ir.Type) -> int:
    width = 64 if isinstance(element, ir.IndexType) else element.width  # type: ignore[attr-defined]
    return max(width // 8, 1)
