"""Squares of a transposed operand, turned in registers.

An operand that is contiguous along another dimension than the result is read along that
one, L vectors of L elements at a time, and turned by shuffles, instead of one element a
lane.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from nanoloom.ir.access import (
    Access,
    Operand,
    add,
    coefficient,
    constant_of,
    difference,
    index,
)
from nanoloom.ir.linalg_query import dims_of
from nanoloom.ir.mlir import arith, ir
from nanoloom.nest.extent import ONE, Lanes
from nanoloom.vector.extent_values import possible_values
from nanoloom.vector.extents import is_same, rounded_down
from nanoloom.vector.reduction_init import root
from nanoloom.vector.register_transpose import PIECE, BlockTranspose
from nanoloom.vector.tile_loops import stepped, strips
from nanoloom.vector.tile_points import with_value

if TYPE_CHECKING:
    from nanoloom.vector.vectorize_loops import Loops

Range = tuple[ir.Value, ir.Value]  # start, end
SIDE = 2  # pieces side by side in vectors of any width


def turning_dimension(inputs: list[Operand], dim: int) -> int | None:
    """The one dimension along which every strided operand is contiguous."""
    found: set[int] = set()
    for x in inputs:
        if x.access(dim) is not Access.STRIDED:
            continue
        results = list(x.indexing.results)
        last = results[-1]
        if not isinstance(last, ir.AffineDimExpr) or last.position == dim:
            return None
        strides, _ = ir.MemRefType(x.buffer.type).get_strides_and_offset()
        linear = [e for e in results[:-1] if dim in dims_of(e)]
        if strides[-1] != 1 or any(coefficient(e, dim) is None for e in linear):
            return None
        if any(last.position in dims_of(e) for e in results[:-1]):
            return None
        found.add(last.position)
    return found.pop() if len(found) == 1 else None


def fits(inputs: Sequence[Operand], dim: int, lanes: Lanes) -> bool:
    """Whether whole pieces fill the vectors of what lies across, of any width, all of
    one width."""
    across = [x for x in inputs if x.access(dim) is Access.STRIDED]
    counts = {PIECE // width_of(x) for x in across}
    two = all(n <= 8 and lanes.count == 2 * n for n in counts)
    return not lanes.scalable or (len(counts) == 1 and two)


def squares(loops: Loops, ivs: Sequence[ir.Value], turning: int) -> None:
    """All of the vector dimension and of the one that strided operands lie along.

    Rows are places along `turning`.  Squares one below the other come first: what they
    read lies side by side.
    """
    rows = index(0), loops.extent(turning)
    if not loops.lanes.scalable:
        rectangle(loops, ivs, turning, rows, (index(0), loops.extent(loops.dim)))
        return
    bottom = ended(loops, rows[1], piece_of(loops))

    def column(loops: Loops, at: Sequence[ir.Value]) -> None:
        if loops.lanes == ONE:  # what full vectors leave, without masks
            stepped(turning, at, rows, 1, loops.tile)
            return
        strip(loops, turning, (rows[0], bottom), at)
        stepped(turning, at, (bottom, rows[1]), 1, loops.tile)

    strips(loops, ivs, column)


def rectangle(
    loops: Loops, ivs: Sequence[ir.Value], turning: int, rows: Range, columns: Range
) -> None:
    """Squares of lanes x lanes, pieces of them, then what is left by smaller ones."""
    if is_same(*rows) or is_same(*columns):
        return
    if loops.lanes == ONE:
        singly(loops, ivs, turning, rows, columns)
        return
    right = ended(loops, columns[1], loops.lanes.count)
    bottom = ended(loops, rows[1], piece_of(loops))
    if not is_same(rows[0], bottom):
        down = partial(strip, loops, turning, (rows[0], bottom))
        covered(loops.dim, ivs, (columns[0], right), loops.lanes.count, down)
        narrow = narrower(loops, columns[1])
        rectangle(narrow, ivs, turning, (rows[0], bottom), (right, columns[1]))
    least = narrower(loops, None)
    rectangle(least, ivs, turning, (bottom, rows[1]), columns)


def strip(loops: Loops, turning: int, rows: Range, ivs: Sequence[ir.Value]) -> None:
    """As many columns as a vector has: squares of all rows, then pieces; of vectors of
    any width some pieces, which share what it takes besides."""
    begin, piece = rows[0], piece_of(loops)
    most = SIDE * piece if loops.lanes.scalable else loops.lanes.count
    for size in dict.fromkeys((most, piece)):
        end = rows[1] if size == piece else rounded_down(rows[1], size)
        some = partial(square, loops, turning, size)
        covered(turning, ivs, (begin, end), size, some)
        begin = end


def ended(loops: Loops, extent: ir.Value, size: int) -> ir.Value:
    """Where blocks of a size end: where the extent does, if the last one can overlap
    the one before it.

    What both write is the same, unless results are made of what is there: of outputs,
    or of inputs in their place.
    """
    arguments = list(loops.block.arguments)[len(loops.inputs) :]
    reads = any(list(argument.uses) for argument in arguments)
    written = {root(x.buffer) for x in loops.outputs}
    reads = reads or any(root(x.buffer) in written for x in loops.inputs)
    overlaps = not reads and min(possible_values(extent), default=0) >= size
    return extent if overlaps else rounded_down(extent, size)


def covered(
    dim: int,
    ivs: Sequence[ir.Value],
    bounds: Range,
    size: int,
    inner: Callable[[Sequence[ir.Value]], None],
) -> None:
    """Blocks of a dimension; the last one begins where it ends with it."""
    begin, end = bounds
    last = difference(end, index(size))
    number, known = constant_of(begin), constant_of(end)
    if number is not None and known is not None and 0 < known - number <= size:
        inner(with_value(ivs, dim, last))
        return

    def block(here: Sequence[ir.Value]) -> None:
        inner(with_value(here, dim, arith.minsi(here[dim], last)))

    overlaps = any(extent % size for extent in possible_values(end))
    stepped(dim, ivs, bounds, size, block if overlaps else inner)


def narrower(loops: Loops, extent: ir.Value | None) -> Loops:
    """With fewer lanes: as many as an extent has room for, or the fewest.

    One where these are more than that, or than there are.
    """
    _, rest = squares_of(loops)
    room = 0 if extent is None else min(possible_values(extent), default=0)
    count = rest
    while count * 2 <= room and count * 2 < loops.lanes.count:
        count *= 2
    return replace(loops, lanes=Lanes(count if count < loops.lanes.count else 1))


def squares_of(loops: Loops) -> tuple[int, int]:
    """Bits of a piece, and lanes of the smallest squares, as the script says."""
    assert loops.squares is not None, "nothing is turned without a word"
    return loops.squares


def across(loops: Loops) -> dict[int, int]:
    """The operands that are turned, by their numbers, and elements of their pieces."""
    piece = PIECE if loops.lanes.scalable else squares_of(loops)[0]
    return {
        number: min(loops.lanes.count, piece // width_of(x))
        for number, x in enumerate(loops.inputs)
        if x.access(loops.dim) is Access.STRIDED
    }


def width_of(x: Operand) -> int:
    # MLIR's stubs give kinds of elements no width.
    return x.element.width  # type: ignore[attr-defined] - numbers have a width


def piece_of(loops: Loops) -> int:
    """Elements of a row that are turned at once: a piece of any operand."""
    return max(across(loops).values())


def singly(
    loops: Loops, ivs: Sequence[ir.Value], turning: int, rows: Range, columns: Range
) -> None:
    """One element at a time."""

    def row(here: Sequence[ir.Value]) -> None:
        stepped(loops.dim, here, columns, 1, loops.tile)

    stepped(turning, ivs, rows, 1, row)


def square(loops: Loops, turning: int, count: int, ivs: Sequence[ir.Value]) -> None:
    """lanes x count results: read along `turning`, turn, compute, write along dim."""
    columns = {
        n: BlockTranspose(
            loops.inputs[n], ivs, loops.dim, turning, loops.lanes, count, size,
            loops.masks.get(0),
        ).columns()
        for n, size in across(loops).items()
    }  # fmt: skip
    for row in range(count):
        here = with_value(ivs, turning, add(ivs[turning], index(row)))
        known = {number: made[row] for number, made in columns.items()}
        loops.tile(here, known)
