"""Squares of a transposed operand, turned in registers.

An operand that is contiguous along another dimension than the result is read along that
one, L vectors of L elements at a time, and turned by shuffles, instead of one element a
lane.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from nanoloom.kernels.structure import dims_of
from nanoloom.mlir import ir, vector
from nanoloom.nest.extent import ONE, Lanes
from nanoloom.vector.access import Access, Operand, add, coefficient, index
from nanoloom.vector.extents import is_same, rounded_down
from nanoloom.vector.jam import moved, stepped

if TYPE_CHECKING:
    from nanoloom.vector.loops import Loops

Range = tuple[ir.Value, ir.Value]  # start, end


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


def transpose(square: Square) -> list[ir.Value]:
    """The columns of a square, each a vector.

    The square is one of squares, of P elements a side.  Vector q gathers row q of all
    that stand one below the other, so that P vectors hold P columns; these are turned
    without an element leaving its P lanes.
    """
    groups = square.lanes // square.size
    gathered = [
        [square.gathered(q, group) for group in range(groups)]
        for q in range(square.size)
    ]
    columns: list[ir.Value] = []
    for group in range(groups):
        columns += turned([vectors[group] for vectors in gathered])
    if not square.is_bf16:
        return columns
    kind = ir.VectorType.get([square.lanes], square.operand.element)
    return [vector.bitcast(kind, column) for column in columns]


@dataclass(frozen=True)
class Square:
    """lanes x lanes elements of an operand, rows along `turning`.

    piece: bits of a row that stay together, `size` elements.
    """

    operand: Operand
    ivs: list[ir.Value]
    dim: int
    turning: int
    lanes: int
    piece: int

    @property
    def size(self) -> int:
        width = self.operand.element.width  # type: ignore[attr-defined]
        return min(self.lanes, self.piece // width)

    @property
    def is_bf16(self) -> bool:
        """bf16 is turned as integers.

        LLVM stops at some shuffles of it where there are conversions of bf16 and no
        AVX-512.
        """
        return isinstance(self.operand.element, ir.BF16Type)

    def load(self, row: int, column: int, count: int) -> ir.Value:
        here = moved(self.ivs, self.dim, add(self.ivs[self.dim], index(row)))
        along = add(self.ivs[self.turning], index(column))
        here = moved(here, self.turning, along)
        kind = ir.VectorType.get([count], self.operand.element)
        made = vector.load(kind, self.operand.buffer, self.operand.indices(here))
        if not self.is_bf16:
            return made
        bits = ir.VectorType.get([count], ir.IntegerType.get_signless(16))
        return vector.bitcast(bits, made)

    def gathered(self, q: int, group: int) -> ir.Value:
        """Pieces `group` of the rows q, q + P, ..., side by side.

        One of them is in its place in the whole row, the others are put beside it.
        """
        made = self.load(group * self.size + q, 0, self.lanes)
        for i in range(self.lanes // self.size):
            if i != group:
                piece = self.load(i * self.size + q, group * self.size, self.size)
                start = [i * self.size]
                made = vector.insert_strided_slice(piece, made, start, [1])
        return made


def turned(rows: list[ir.Value]) -> list[ir.Value]:
    """P vectors: element i of every P lanes of vector j becomes element j of vector i.

    log2(P) rounds: bundles of neighbouring rows are woven, each vector of one with that
    of the other, its first halves and its second halves.
    """
    bundles = [[row] for row in rows]
    while len(bundles) > 1:
        both = zip(bundles[::2], bundles[1::2], strict=True)
        unit = len(rows) // len(bundles)
        bundles = [weave(one, other, len(rows), unit) for one, other in both]
    return bundles[0]


def weave(
    bundle: list[ir.Value], other: list[ir.Value], size: int, unit: int
) -> list[ir.Value]:
    count = ir.VectorType(bundle[0].type).shape[0]
    return [
        vector.shuffle(x, y, lanes_woven(count, size, unit, half))
        for x, y in zip(bundle, other, strict=True)
        for half in range(2)
    ]


def lanes_woven(count: int, size: int, unit: int, half: int) -> list[int]:
    """Of every `size` lanes of two vectors one half: units of each in turns."""
    start = half * size // 2
    return [
        vector_start + group + place + lane
        for group in range(0, count, size)
        for place in range(start, start + size // 2, unit)
        for vector_start in (0, count)
        for lane in range(unit)
    ]


def squares(loops: Loops, ivs: Sequence[ir.Value], turning: int) -> None:
    """All of the vector dimension and of the one that strided operands lie along."""
    rows = index(0), loops.extent(turning)
    rectangle(loops, ivs, turning, rows, (index(0), loops.extent(loops.dim)))


def rectangle(
    loops: Loops, ivs: Sequence[ir.Value], turning: int, rows: Range, columns: Range
) -> None:
    """Squares of lanes x lanes, then what they leave of rows and columns by smaller.

    Rows are places along `turning`.  Squares one below the other come first: what they
    read lies side by side.
    """
    if is_same(*rows) or is_same(*columns):
        return
    if loops.lanes == ONE:
        singly(loops, ivs, turning, rows, columns)
        return
    _, rest = squares_of(loops)
    full = rounded_down(rows[1], loops.lanes.count)
    whole = rounded_down(columns[1], loops.lanes.count)

    def below(here: Sequence[ir.Value]) -> None:
        stepped(turning, here, (rows[0], full), loops.lanes.count, one)

    def one(here: Sequence[ir.Value]) -> None:
        square(loops, here, turning)

    stepped(loops.dim, ivs, (columns[0], whole), loops.lanes.count, below)
    narrow = replace(loops, lanes=Lanes(rest if loops.lanes.count > rest else 1))
    rectangle(narrow, ivs, turning, (rows[0], full), (whole, columns[1]))
    rectangle(narrow, ivs, turning, (full, rows[1]), columns)


def squares_of(loops: Loops) -> tuple[int, int]:
    """Bits of a piece, and lanes of what full vectors leave, as the script says."""
    assert loops.squares is not None, "nothing is turned without a word"
    return loops.squares


def singly(
    loops: Loops, ivs: Sequence[ir.Value], turning: int, rows: Range, columns: Range
) -> None:
    """One element at a time."""

    def row(here: Sequence[ir.Value]) -> None:
        stepped(loops.dim, here, columns, 1, loops.tile)

    stepped(turning, ivs, rows, 1, row)


def square(loops: Loops, ivs: Sequence[ir.Value], turning: int) -> None:
    """lanes x lanes results: read along `turning`, turn, compute, write along dim."""
    (piece, _), lanes = squares_of(loops), loops.lanes.count
    columns = {
        number: transpose(Square(x, list(ivs), loops.dim, turning, lanes, piece))
        for number, x in enumerate(loops.inputs)
        if x.access(loops.dim) is Access.STRIDED
    }
    for row in range(loops.lanes.count):
        here = moved(ivs, turning, add(ivs[turning], index(row)))
        known = {number: made[row] for number, made in columns.items()}
        loops.tile(here, known)
