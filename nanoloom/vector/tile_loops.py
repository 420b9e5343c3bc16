"""The loops around a tile: blocks of points, and of vectors, then what is left.

    for i in 0..n by count: f(i); ...; f(i + count - 1)

What is left of a dimension is one block of fewer points where its extent is known, or
one of few numbers; else single points.  Of the vector dimension the last vector of that
block is masked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from nanoloom.ir.access import add, constant_of, difference, index
from nanoloom.ir.mlir import arith, ir
from nanoloom.nest.extent import ONE
from nanoloom.nest.guard import MOST_ENDS, Partition
from nanoloom.target.tail_forms import MASKING, SCALAR_REMAINDER, VECTOR_LENGTH
from nanoloom.vector.emit_loops import emit_branch, emit_loop
from nanoloom.vector.extent_values import possible_values
from nanoloom.vector.extents import is_next, is_same, rounded_down
from nanoloom.vector.loop_partition import points_within
from nanoloom.vector.masked_iterations import (
    Masks,
    by_lengths,
    first_lanes,
    rest_lanes,
    under_masks,
)
from nanoloom.vector.software_pipelining import stream
from nanoloom.vector.tile_points import with_value
from nanoloom.vector.widths import elements

if TYPE_CHECKING:
    from nanoloom.vector.vectorize_loops import Loops

# Numbers of points that may be left: none, and those of two kinds of block.  A bound of
# the code's size, no word: each number has a block of its own, as long as the tile's.
MOST_RESTS = 3
Emit = Callable[["Loops", Sequence[ir.Value]], None]


def blocks(loops: Loops, dim: int, ivs: Sequence[ir.Value], inner: Emit) -> None:
    """All points of a dimension."""
    count, extent = loops.jam.get(dim, 1), loops.extent(dim)
    inside = points_within(loops, dim) if count > 1 else None
    if inside is not None and with_ends(loops, dim, ivs, inside, inner):
        return
    begin, end = inside or (index(0), extent)
    whole = add(begin, rounded_down(difference(end, begin), count))
    some = partial(of_points, loops, dim, inner)
    if inside is not None:
        stepped(dim, ivs, (index(0), begin), 1, some(1))
    tiles(loops, dim, ivs, (begin, whole), count, some(count))
    rests = left_of(difference(end, begin), count)
    if not rests and count > 1:
        stepped(dim, ivs, (whole, end), 1, some(1))
    for rest in rests:
        here = with_value(ivs, dim, whole)
        for_rest(rest, rests, (whole, end), partial(some(rest), here))
    if inside is not None:
        stepped(dim, ivs, (end, extent), 1, some(1))


def with_ends(
    loops: Loops,
    dim: int,
    ivs: Sequence[ir.Value],
    inside: tuple[ir.Value, ir.Value],
    inner: Emit,
) -> bool:
    """Blocks of an image's row, those at its ends by themselves; nothing, and False,
    where these are too many, or nobody knows.

    inside: the points whose windows are within the image.
    """
    count = loops.jam[dim]
    known = [constant_of(x) for x in (*inside, loops.extent(dim))]
    if None in known:
        return False
    begin, end, extent = (number or 0 for number in known)
    made = Partition.of(range(begin, end), extent, count, whole=True)
    if len(made.ends) > MOST_ENDS:
        return False
    some = partial(of_points, loops, dim, inner)
    for at in made.prologue:
        some(min(count, extent - at))(with_value(ivs, dim, index(at)))
    first, last = index(made.steady.start), index(made.steady.stop)
    tiles(loops, dim, ivs, (first, last), count, some(count))
    for at in made.epilogue:
        some(min(count, extent - at))(with_value(ivs, dim, index(at)))
    return True


def of_points(
    loops: Loops, dim: int, inner: Emit, count: int
) -> Callable[[Sequence[ir.Value]], None]:
    """What is done for so many points of a dimension at once."""
    jam = {**loops.jam, dim: count} if dim in loops.jam else loops.jam
    return lambda at: inner(replace(loops, jam=jam), at)


def strips(loops: Loops, ivs: Sequence[ir.Value], inner: Emit) -> None:
    """All vectors of the vector dimension."""
    dim, lanes = loops.dim, loops.lanes
    if loops.formed in MASKING:
        masking(loops, ivs, inner)
        return
    count, extent = loops.jam.get(dim, 1), loops.extent(dim)
    block, width = elements(lanes, count), elements(lanes)
    many = rounded_down(extent, block)
    tiles(loops, dim, ivs, (index(0), many), block, lambda at: inner(loops, at))
    rests = left_of(extent, block) if isinstance(block, int) else ()
    for rest in rests:
        here = with_value(ivs, dim, many)
        for_rest(rest, rests, (many, extent), partial(left, loops, rest, here, inner))
    if rests:
        return
    one, whole = side_by_side(loops, 1), rounded_down(extent, width)
    if count > 1:
        stepped(dim, ivs, (many, whole), width, lambda at: inner(one, at))
    if loops.formed == SCALAR_REMAINDER:
        singles(loops, ivs, (whole, extent), inner)
        return

    def partly() -> None:
        mask = rest_lanes(lanes, arith.subi(extent, whole))
        inner(replace(one, masks={0: mask}), with_value(ivs, dim, whole))

    emit_branch(arith.cmpi(arith.CmpIPredicate.slt, whole, extent), partly)


def masking(loops: Loops, ivs: Sequence[ir.Value], inner: Emit) -> None:
    """All vectors of the vector dimension, every one under a mask."""
    dim, extent = loops.dim, loops.extent(loops.dim)

    def one(at: ir.Value, masks: Masks, values: list[ir.Value]) -> list[ir.Value]:
        by_number = dict(enumerate(masks))
        inner(replace(loops, masks=by_number), with_value(ivs, dim, at))
        return values

    if loops.formed == VECTOR_LENGTH:
        by_lengths(loops.lanes, extent, [], one)
        return
    count = loops.jam.get(dim, 1)
    under_masks(loops.lanes, extent, count, [], one, by_places=loops.by_places)


def left_of(extent: ir.Value, block: int) -> tuple[int, ...]:
    """How many points blocks can leave, () if that is not known or too many numbers."""
    rests = sorted({number % block for number in possible_values(extent)})
    return tuple(rests) if len(rests) <= MOST_RESTS else ()


def for_rest(
    rest: int,
    rests: tuple[int, ...],
    bounds: tuple[ir.Value, ir.Value],
    emit: Callable[[], None],
) -> None:
    """What is done where so much is left, one of several numbers."""
    if not rest:
        return
    if len(rests) == 1:
        emit()
        return
    begin, end = bounds
    here = arith.cmpi(arith.CmpIPredicate.eq, arith.subi(end, begin), index(rest))
    emit_branch(here, emit)


def left(loops: Loops, rest: int, ivs: Sequence[ir.Value], inner: Emit) -> None:
    """So many elements, fewer than a block: one block of fewer vectors.

    A single element in the last vector is not masked: LLVM may write more than that.
    """
    vectors, rest = divmod(rest, loops.lanes.count)
    masked = rest > 1 and loops.formed != SCALAR_REMAINDER
    if masked:
        mask = first_lanes(loops.lanes, index(rest))
        wide = replace(side_by_side(loops, vectors + 1), masks={vectors: mask})
        inner(wide, ivs)
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
        inner(with_value(ivs, dim, bounds[0]))
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
        inner(with_value(ivs, dim, bounds[0]))
        return
    emit_loop(bounds, by, [], lambda at, _: inner(with_value(ivs, dim, at)))
