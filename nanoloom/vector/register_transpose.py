"""A square of a transposed operand, turned in registers by shuffles."""

from __future__ import annotations

from dataclasses import dataclass

from nanoloom.ir.access import Operand, add, index
from nanoloom.ir.mlir import ir, vector
from nanoloom.vector.tile_loops import moved
from nanoloom.vector.widths import filled


def transpose(square: SquareTranspose) -> list[ir.Value]:
    """The columns of a square, or of a piece of it, each a vector.

    The square is one of squares, of P elements a side.  Vector q gathers row q of all
    that stand one below the other, so that P vectors hold P columns; these are turned
    without an element leaving its P lanes.
    """
    gathered = [
        [square.gathered(q, group) for group in range(square.columns // square.size)]
        for q in range(square.size)
    ]
    columns: list[ir.Value] = []
    for vectors in zip(*gathered, strict=True):
        columns += transposed([*vectors])
    if not square.is_bf16:
        return columns
    kind = ir.VectorType.get([square.lanes], square.operand.element)
    return [vector.bitcast(kind, column) for column in columns]


@dataclass(frozen=True)
class SquareTranspose:
    """lanes x columns elements of an operand, rows along `turning`.

    size: elements of a row that stay together, a piece.  columns: as many as lanes, or
    those of some pieces.
    """

    operand: Operand
    ivs: list[ir.Value]
    dim: int
    turning: int
    lanes: int
    columns: int
    size: int

    @property
    def is_bf16(self) -> bool:
        """bf16 is turned as integers.

        LLVM stops at some shuffles of it where there are conversions of bf16 and no
        AVX-512.
        """
        return isinstance(self.operand.element, ir.BF16Type)

    @property
    def kind(self) -> ir.Type:
        """Of what is turned."""
        return ir.IntegerType.get_signless(16) if self.is_bf16 else self.operand.element

    def load(self, row: int, column: int, count: int) -> ir.Value:
        here = moved(self.ivs, self.dim, add(self.ivs[self.dim], index(row)))
        along = add(self.ivs[self.turning], index(column))
        here = moved(here, self.turning, along)
        kind = ir.VectorType.get([count], self.operand.element)
        made = vector.load(kind, self.operand.buffer, self.operand.indices(here))
        if not self.is_bf16:
            return made
        return vector.bitcast(ir.VectorType.get([count], self.kind), made)

    def gathered(self, q: int, group: int) -> ir.Value:
        """Pieces `group` of the rows q, q + P, ..., side by side.

        Of whole rows one is in its place, the others are put beside it.
        """
        whole = self.columns == self.lanes
        if whole:
            made = self.load(group * self.size + q, 0, self.lanes)
        else:
            made = filled(ir.VectorType.get([self.lanes], self.kind), 0)
        for i in range(self.lanes // self.size):
            if not whole or i != group:
                piece = self.load(i * self.size + q, group * self.size, self.size)
                start = [i * self.size]
                made = vector.insert_strided_slice(piece, made, start, [1])
        return made


def transposed(rows: list[ir.Value]) -> list[ir.Value]:
    """P vectors: element i of every P lanes of vector j becomes element j of vector i.

    log2(P) rounds: bundles of neighbouring rows are woven, each vector of one with that
    of the other, its first halves and its second halves.
    """
    bundles = [[row] for row in rows]
    while len(bundles) > 1:
        both = zip(bundles[::2], bundles[1::2], strict=True)
        unit = len(rows) // len(bundles)
        bundles = [interleave(one, other, len(rows), unit) for one, other in both]
    return bundles[0]


def interleave(
    bundle: list[ir.Value], other: list[ir.Value], size: int, unit: int
) -> list[ir.Value]:
    count = ir.VectorType(bundle[0].type).shape[0]
    return [
        vector.shuffle(x, y, interleave_lanes(count, size, unit, half))
        for x, y in zip(bundle, other, strict=True)
        for half in range(2)
    ]


def interleave_lanes(count: int, size: int, unit: int, half: int) -> list[int]:
    """Of every `size` lanes of two vectors one half: units of each in turns."""
    start = half * size // 2
    return [
        vector_start + group + place + lane
        for group in range(0, count, size)
        for place in range(start, start + size // 2, unit)
        for vector_start in (0, count)
        for lane in range(unit)
    ]
