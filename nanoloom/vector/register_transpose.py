"""Columns of a transposed operand from rows of it, in registers.

    rows[q] = pieces of P numbers of each of the rows q, q + P, q + 2 P, ...
    columns = rows with numbers exchanged between them, in log2(P) rounds

No number leaves its P lanes: vectors may have any width.  Of a known one pieces are put
beside each other, and shuffled; else they are gathered, 64 bits each, the widest number
that a gather takes, and exchanged by SVE's TRN.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from nanoloom.ir.access import Operand, add, index, multiply
from nanoloom.ir.mlir import arith, ir, llvm, vector
from nanoloom.nest.extent import Lanes
from nanoloom.target.instructions.aarch64 import EXCHANGES
from nanoloom.vector.addresses import address, ahead, bytes_of, distance
from nanoloom.vector.nanokernel.instructions import emit
from nanoloom.vector.tile_points import with_value
from nanoloom.vector.widths import filled, vector_type, with_element

PIECE = 64  # bits that are gathered


@dataclass(frozen=True)
class BlockTranspose:
    """Some columns of an operand for as many rows as a vector has lanes.

    dim: along the rows.  turning: along the columns.  count: of columns, those of some
    pieces, or of a vector of known width as many as lanes.  size: elements of a row
    that stay together, a piece.  mask: which rows count, of any width; None for all.
    """

    operand: Operand
    ivs: Sequence[ir.Value]
    dim: int
    turning: int
    lanes: Lanes
    count: int
    size: int
    mask: ir.Value | None

    def columns(self) -> list[ir.Value]:
        """The columns, each a vector."""
        groups = range(self.count // self.size)
        gathered = [
            [self.gathered(q, group) for group in groups] for q in range(self.size)
        ]
        exchange = exchanged if self.lanes.scalable else interleaved
        kind = vector_type(self.lanes, self.operand.element)
        return [
            column if column.type == kind else vector.bitcast(kind, column)
            for vectors in zip(*gathered, strict=True)
            for column in exchange([*vectors])
        ]

    def gathered(self, q: int, group: int) -> ir.Value:
        """Pieces `group` of the rows q, q + P, ..., side by side.

        Of whole rows one is in its place, the others are put beside it.
        """
        if self.lanes.scalable:
            return self.gathered_pieces(q, group)
        whole, lanes = self.count == self.lanes.count, self.lanes.count
        if whole:
            made = self.load(group * self.size + q, 0, lanes)
        else:
            made = filled(ir.VectorType.get([lanes], self.kind), 0)
        for i in range(lanes // self.size):
            if not whole or i != group:
                piece = self.load(i * self.size + q, group * self.size, self.size)
                start = [i * self.size]
                made = vector.insert_strided_slice(piece, made, start, [1])
        return made

    @property
    def kind(self) -> ir.Type:
        """Of what is turned: bf16 as integers.

        LLVM stops at some shuffles of it where there are conversions of bf16 and no
        AVX-512.
        """
        element = self.operand.element
        bf16 = isinstance(element, ir.BF16Type)
        return ir.IntegerType.get_signless(16) if bf16 else element

    def load(self, row: int, column: int, count: int) -> ir.Value:
        """Neighbours in a row."""
        here = with_value(self.ivs, self.dim, add(self.ivs[self.dim], index(row)))
        along = add(self.ivs[self.turning], index(column))
        at = self.operand.indices(with_value(here, self.turning, along))
        kind = ir.VectorType.get([count], self.operand.element)
        made = vector.load(kind, self.operand.buffer, at)
        turned = with_element(kind, self.kind)
        return made if turned == kind else vector.bitcast(turned, made)

    # ---- vectors of any width ----------------------------------------------------

    def gathered_pieces(self, q: int, group: int) -> ir.Value:
        """The same by a gather, nothing where the mask has none."""
        buffer, (here, mask) = self.operand.buffer, (self.ivs, self.masks[q])
        along = add(here[self.turning], index(group * self.size))
        at = self.operand.indices(with_value(here, self.turning, along))
        lanes = Lanes(self.lanes.count // self.size, scalable=True)
        i64 = ir.IntegerType.get_signless(PIECE)
        kind, byte = vector_type(lanes, i64), ir.IntegerType.get_signless(8)
        start = ahead(address(buffer, at), self.places(q, lanes), byte)
        if mask is None:
            mask = filled(vector_type(lanes, ir.IntegerType.get_signless(1)), 1)
        return llvm.intr_masked_gather(kind, start, mask, [filled(kind, 0)], 1)

    def places(self, first: int, lanes: Lanes) -> ir.Value:
        """Bytes to the rows q, q + P, ...: nothing that moves with a loop."""
        apart = distance(self.operand, self.dim)
        apart = multiply(apart, index(bytes_of(self.operand.buffer)))
        kind = vector_type(lanes, ir.IndexType.get())
        rows = arith.muli(vector.step(kind), filled(kind, self.size))
        rows = arith.addi(rows, filled(kind, first)) if first else rows
        return arith.muli(rows, vector.broadcast(kind, apart))

    @cached_property
    def masks(self) -> list[ir.Value | None]:
        """Of the rows q, q + P, ... for each q: every P-th lane."""
        if self.mask is None:
            return [None] * self.size
        found = [self.mask]
        while len(found) < self.size:
            halves = [list(vector.deinterleave(mask)) for mask in found]
            found = [both[n] for n in range(2) for both in halves]
        return [*found]


# ---- P vectors: element i of every P lanes of vector j becomes element j of vector i


def exchanged(rows: list[ir.Value]) -> list[ir.Value]:
    """Round by round vectors 1, 2, 4, ... apart exchange as many numbers."""
    size, vectors = 1, list(rows)
    while size < len(rows):
        bits = PIECE // len(rows) * size
        lanes = Lanes(2 * PIECE // bits, scalable=True)
        kind = vector_type(lanes, ir.IntegerType.get_signless(bits))
        for first in (n for n in range(len(rows)) if not n & size):
            pair = [vector.bitcast(kind, vectors[n]) for n in (first, first + size)]
            for n, exchange in zip((first, first + size), EXCHANGES, strict=True):
                vectors[n] = emit(exchange.function, kind, pair)
        size *= 2
    return vectors


def interleaved(rows: list[ir.Value]) -> list[ir.Value]:
    """Round by round bundles of neighbouring rows are woven, each vector of one with
    that of the other, its first halves and its second halves."""
    bundles, (count,) = [[row] for row in rows], ir.VectorType(rows[0].type).shape
    while len(bundles) > 1:
        unit = len(rows) // len(bundles)
        lanes = [interleave_lanes(count, len(rows), unit, half) for half in range(2)]
        bundles = [
            [vector.shuffle(x, y, half) for x, y in pairs for half in lanes]
            for pairs in map(zip, bundles[::2], bundles[1::2])
        ]
    return bundles[0]


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
