"""A transposed operand on vectors of any width: pieces of its rows, turned.

    rows[q] = P numbers of each of the rows q, q + P, q + 2 P, ...    (P gathers)
    columns = rows with numbers exchanged between them                (SVE's TRN)

The operand is contiguous along another dimension than the result.  A piece is 64 bits,
the widest number that a gather takes; in log2(P) rounds each vector becomes a column.
Nothing here knows how wide a vector is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from nanoloom.ir.access import Access, Operand, add, index, multiply
from nanoloom.ir.mlir import arith, ir, llvm, memref, vector
from nanoloom.nest.extent import ONE, Lanes
from nanoloom.target.instructions.aarch64 import EXCHANGES
from nanoloom.vector.extent_values import possible_values
from nanoloom.vector.extents import rounded_down
from nanoloom.vector.nanokernel.instructions import emit
from nanoloom.vector.scalable_gather import distance, same_shape
from nanoloom.vector.tile_loops import for_rest, left_of, moved, stepped, strips
from nanoloom.vector.widths import filled, vector_type

if TYPE_CHECKING:
    from nanoloom.vector.vectorize_loops import Loops

PIECE = 64  # bits
SIDE = 2  # blocks of columns in a round, which share what it takes besides


def numbers_of(operand: Operand) -> int:
    """Of a piece."""
    # numbers with a width alone come here; the bindings' base class has none
    return PIECE // operand.element.width  # type: ignore[attr-defined]


def fits(inputs: Sequence[Operand], dim: int, lanes: Lanes) -> bool:
    """Whether whole pieces fill the vectors of what lies across, all of one width."""
    across = [x for x in inputs if x.access(dim) is Access.STRIDED]
    counts = {numbers_of(x) for x in across}
    two = all(n <= 8 and lanes.count == 2 * n for n in counts)
    return len(counts) == 1 and two


def columns(loops: Loops, ivs: Sequence[ir.Value], turning: int) -> None:
    """All of the vector dimension and of the one that strided operands lie along.

    Pieces side by side come first: they share lines of a cache.
    """
    extent = loops.extent(turning)
    count = max(numbers_of(x) for x in loops.inputs if is_across(loops, x))
    whole, rests = rounded_down(extent, count), left_of(extent, count)
    overlaps = min(possible_values(extent), default=0) >= count

    def block(loops: Loops, at: Sequence[ir.Value]) -> None:
        begin = index(0)
        if loops.lanes == ONE:  # what full vectors leave, without masks
            stepped(turning, at, (begin, extent), 1, loops.tile)
            return
        for number in (SIDE * count, count):
            end = rounded_down(extent, number)
            some = partial(blocks_of, loops, turning, number // count)
            stepped(turning, at, (begin, end), number, some)
            begin = end
        if not rests or not overlaps:
            stepped(turning, at, (whole, extent), 1, loops.tile)
            return
        for rest in rests:
            here = moved(at, turning, arith.subi(extent, index(count)))
            some = partial(tiles, loops, turning, here, range(count - rest, count))
            for_rest(rest, rests, (whole, extent), some)

    strips(loops, ivs, block)


def blocks_of(loops: Loops, turning: int, blocks: int, ivs: Sequence[ir.Value]) -> None:
    """All results of some blocks of columns side by side."""
    count = max(numbers_of(x) for x in loops.inputs if is_across(loops, x))
    for block in range(blocks):
        here = moved(ivs, turning, add(ivs[turning], index(block * count)))
        tiles(loops, turning, here, range(count))


def tiles(
    loops: Loops, turning: int, ivs: Sequence[ir.Value], numbers: Iterable[int]
) -> None:
    """The results of some of the columns that are turned together."""
    across = [n for n, x in enumerate(loops.inputs) if is_across(loops, x)]
    made = {n: ScalableTranspose(loops, n, ivs).turned() for n in across}
    for number in numbers:
        there = moved(ivs, turning, add(ivs[turning], index(number)))
        loops.tile(there, {n: found[number] for n, found in made.items()})


def is_across(loops: Loops, x: Operand) -> bool:
    return x.access(loops.dim) is Access.STRIDED


@dataclass(frozen=True)
class ScalableTranspose:
    """P columns of an operand for as many rows as a vector has lanes."""

    loops: Loops
    number: int
    ivs: Sequence[ir.Value]

    @property
    def operand(self) -> Operand:
        return self.loops.inputs[self.number]

    def turned(self) -> list[ir.Value]:
        """The columns, each a vector."""
        count = numbers_of(self.operand)
        apart = multiply(distance(self.operand, self.loops.dim), bytes_of(self.operand))
        lanes = Lanes(self.loops.lanes.count // count, scalable=True)
        begin = pointer(self.operand, self.ivs)
        rows = [
            gathered(begin, places(q, count, apart, lanes), mask)
            for q, mask in enumerate(self.masks(count))
        ]
        kind = vector_type(self.loops.lanes, self.operand.element)
        return [vector.bitcast(kind, column) for column in exchange_lanes(rows)]

    def masks(self, count: int) -> list[ir.Value | None]:
        """Of the rows q, q + P, ... for each q: every P-th lane."""
        whole = self.loops.masks.get(0)
        if whole is None:
            return [None] * count
        found = [whole]
        while len(found) < count:
            halves = [list(vector.deinterleave(mask)) for mask in found]
            found = [both[n] for n in range(2) for both in halves]
        return [*found]


def exchange_lanes(rows: list[ir.Value]) -> list[ir.Value]:
    """Element i of every P lanes of vector j becomes element j of vector i.

    Round by round vectors 1, 2, 4, ... apart exchange as many numbers.
    """
    size, vectors = 1, list(rows)
    while size < len(rows):
        bits = PIECE // len(rows) * size
        kind = ir.VectorType.get(
            [2 * PIECE // bits], ir.IntegerType.get_signless(bits), scalable=[True]
        )
        for first in range(len(rows)):
            if first & size:
                continue
            pair = [vector.bitcast(kind, vectors[n]) for n in (first, first + size)]
            for n, exchange in zip((first, first + size), EXCHANGES, strict=True):
                vectors[n] = emit(exchange.function, kind, pair)
        size *= 2
    return vectors


def places(first: int, step: int, apart: ir.Value, lanes: Lanes) -> ir.Value:
    """Bytes to the rows first, first + step, ...: nothing that moves with a loop."""
    kind = vector_type(lanes, ir.IndexType.get())
    rows = arith.muli(vector.step(kind), filled(kind, step))
    rows = arith.addi(rows, filled(kind, first)) if first else rows
    return arith.muli(rows, vector.broadcast(kind, apart))


def gathered(begin: ir.Value, far: ir.Value, mask: ir.Value | None) -> ir.Value:
    """Numbers of 64 bits, so many bytes behind; nothing where the mask has none."""
    i64, i1 = ir.IntegerType.get_signless(PIECE), ir.IntegerType.get_signless(1)
    kind = same_shape(far.type, i64)
    pointers = ir.Type.parse(f"vector<[{kind.shape[0]}]x!llvm.ptr>")
    free = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 0)
    i8, dynamic = ir.IntegerType.get_signless(8), [-(2**31)]
    far = arith.index_cast(kind, far)
    at = llvm.GEPOp(pointers, begin, [far], dynamic, i8, free).result
    if mask is None:
        mask = filled(same_shape(kind, i1), 1)
    rest = filled(kind, 0)
    return llvm.intr_masked_gather(kind, at, mask, [rest], 1)


def pointer(x: Operand, ivs: Sequence[ir.Value]) -> ir.Value:
    """The address of an element."""
    _, place, *rest = memref.ExtractStridedMetadataOp(x.buffer).results
    indices = x.indices(ivs)
    for at, stride in zip(indices, rest[len(indices) :], strict=True):
        place = add(place, multiply(at, stride))
    base = memref.extract_aligned_pointer_as_index(x.buffer)
    total = add(base, multiply(place, bytes_of(x)))
    number = arith.index_cast(ir.IntegerType.get_signless(64), total)
    return llvm.inttoptr(ir.Type.parse("!llvm.ptr"), number)


def bytes_of(x: Operand) -> ir.Value:
    # as in numbers_of
    return index(x.element.width // 8)  # type: ignore[attr-defined]
