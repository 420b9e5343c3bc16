"""The loops around a tile: blocks of points, and of vectors, then what is left.

    for i in 0..n by count: f(i); ...; f(i + count - 1)

What is left of a dimension is one block of fewer points where its extent is known, else
single points.  Of the vector dimension the last vector of that block is masked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from nanoloom.mlir import arith, ir, scf, vector
from nanoloom.nest.extent import Lanes
from nanoloom.vector.access import add, index
from nanoloom.vector.extents import constant_index, is_next, is_same, rounded_down
from nanoloom.vector.pipelined import stream
from nanoloom.vector.widths import ONE, as_index, elements, vector_type

if TYPE_CHECKING:
    from nanoloom.vector.loops import Loops

Emit = Callable[["Loops", Sequence[ir.Value]], None]


def blocks(loops: Loops, dim: int, ivs: Sequence[ir.Value], inner: Emit) -> None:
    """All points of a dimension."""
    count, extent = loops.jam.get(dim, 1), loops.extent(dim)
    known, whole = constant_index(extent), rounded_down(extent, count)

    def some(count: int) -> Callable[[Sequence[ir.Value]], None]:
        jam = {**loops.jam, dim: count} if dim in loops.jam else loops.jam
        return lambda at: inner(replace(loops, jam=jam), at)

    tiles(loops, dim, ivs, (index(0), whole), count, some(count))
    if known is None and count > 1:
        stepped(dim, ivs, (whole, extent), 1, some(1))
    elif known is not None and known % count:
        some(known % count)(moved(ivs, dim, whole))


def strips(loops: Loops, ivs: Sequence[ir.Value], inner: Emit) -> None:
    """All vectors of the vector dimension."""
    dim, lanes = loops.dim, loops.lanes
    count, extent = loops.jam.get(dim, 1), loops.extent(dim)
    block, width = elements(lanes, count), elements(lanes)
    known, many = constant_index(extent), rounded_down(extent, block)
    tiles(loops, dim, ivs, (index(0), many), block, lambda at: inner(loops, at))
    if known is not None and isinstance(block, int):
        left(loops, known % block, moved(ivs, dim, many), inner)
        return
    one, whole = side_by_side(loops, 1), rounded_down(extent, width)
    if count > 1:
        stepped(dim, ivs, (many, whole), width, lambda at: inner(one, at))
    if not loops.is_maskable():
        singles(loops, ivs, (whole, extent), inner)
        return
    branch = scf.IfOp(arith.cmpi(arith.CmpIPredicate.slt, whole, extent))
    with ir.InsertionPoint(branch.then_block):
        masked = replace(one, mask=first_lanes(lanes, arith.subi(extent, whole)))
        inner(masked, moved(ivs, dim, whole))
        scf.yield_([])


def left(loops: Loops, rest: int, ivs: Sequence[ir.Value], inner: Emit) -> None:
    """So many elements, fewer than a block: one block of fewer vectors.

    A single element in the last vector is not masked: LLVM may write more than that.
    """
    vectors, rest = divmod(rest, loops.lanes.count)
    masked = rest > 1 and loops.is_maskable()
    if masked:
        mask = first_lanes(loops.lanes, index(rest))
        inner(replace(side_by_side(loops, vectors + 1), mask=mask), ivs)
        return
    if vectors:
        inner(side_by_side(loops, vectors), ivs)
    begin = ivs[loops.dim]
    end = add(begin, index(vectors * loops.lanes.count + rest))
    first = add(begin, index(vectors * loops.lanes.count))
    singles(loops, ivs, (first, end), inner)


def singles(
    loops: Loops,
    ivs: Sequence[ir.Value],
    bounds: tuple[ir.Value, ir.Value],
    inner: Emit,
) -> None:
    """One element at a time."""
    narrow = replace(side_by_side(loops, 1), lanes=ONE)
    stepped(loops.dim, ivs, bounds, 1, lambda at: inner(narrow, at))


def side_by_side(loops: Loops, vectors: int) -> Loops:
    """The same with so many vectors at once."""
    return replace(loops, jam={**loops.jam, loops.dim: vectors})


def first_lanes(lanes: Lanes, count: ir.Value) -> ir.Value:
    """The mask of so many lanes."""
    kind = vector_type(lanes, ir.IntegerType.get_signless(1))
    return vector.create_mask(kind, [count])


def moved(ivs: Sequence[ir.Value], dim: int, to: ir.Value) -> list[ir.Value]:
    """The loop variables at another place of one dimension."""
    return [to if d == dim else iv for d, iv in enumerate(ivs)]


def tiles(
    loops: Loops,
    dim: int,
    ivs: Sequence[ir.Value],
    bounds: tuple[ir.Value, ir.Value],
    by: int | ir.Value,
    inner: Callable[[Sequence[ir.Value]], None],
) -> None:
    """Whole blocks of a dimension."""
    if dim not in loops.ahead or is_same(*bounds):
        stepped(dim, ivs, bounds, by, inner)
    elif isinstance(by, int) and is_next(*bounds, by):
        inner(moved(ivs, dim, bounds[0]))
    else:
        stream(loops, dim, ivs, bounds, by)


def stepped(
    dim: int,
    ivs: Sequence[ir.Value],
    bounds: tuple[ir.Value, ir.Value],
    by: int | ir.Value,
    inner: Callable[[Sequence[ir.Value]], None],
) -> None:
    """A loop over a dimension; none for no step, the step itself for one."""
    if is_same(*bounds):
        return
    if isinstance(by, int) and is_next(*bounds, by):
        inner(moved(ivs, dim, bounds[0]))
        return
    loop = scf.ForOp(*bounds, as_index(by))
    with ir.InsertionPoint(loop.body):
        inner(moved(ivs, dim, loop.induction_variable))
        scf.yield_([])
