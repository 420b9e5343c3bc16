"""Flat operands for AMX: rows are woven on the way (paper, section 4.3.1).

An activation cannot be packed while compiling.  Its rows become VNNI order as tile
registers read them, with G of them together, 2 of bf16 or 4 of bytes:

    block[k / G][G * n + k % G] = right[k][n]

The first step's rows are woven in front of the loop over k, those of each other step
while the one before it is multiplied: vector registers work beside the tile registers
(Algorithm 1, lines 4-5; Algorithm 3, lines 2-5).  The paper weaves for every tile of
rows, in a block of two steps.  Where the nanokernel says so (copied = "between"), only
a task's first one does, in a block with room for all that the others read.

The columns stay in order: two shuffles across the lanes make a row of pairs.  Unpacking
within 128 bits, as in Listing 4, takes half as long, but permutes columns: in the end
all sums of all tiles would have to be shuffled.  These here take hardly longer than the
products of their step (`python -m benchmarks inner_loops`), in the first tile alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from nanoloom.errors import Error
from nanoloom.ir.access import add, apply, divide, index, multiply
from nanoloom.ir.linalg_query import Op, maps
from nanoloom.ir.mlir import arith, ir, memref, vector
from nanoloom.vector.emit_loops import emit_loop
from nanoloom.vector.nanokernel.amx import instructions as tiles
from nanoloom.vector.nanokernel.amx.panels import PLACES, SHARED
from nanoloom.vector.nanokernel.amx.tile_edges import WIDTH, read_columns, room
from nanoloom.vector.nanokernel.k_groups import interleaved_panel
from nanoloom.vector.widths import filled

MOST_BYTES = 1 << 24  # of a block
ROW_BYTES = 2 * tiles.ROW_BYTES  # of a block: two tile registers lie side by side


@dataclass(frozen=True)
class InterleavedRows:
    """A right operand, and the block that its rows are woven into.

    row: the loop along its rows.  start: the block's row where this tile's part begins.
    ring: numbers of k that the part has room for, 0 for all of them.  again: 0 where
    the part is not yet woven, None where each tile weaves its own.
    """

    source: ir.Value
    indexing: ir.AffineMap
    row: int
    block: ir.Value
    start: ir.Value
    ring: int
    again: ir.Value | None

    @property
    def group(self) -> int:
        """Rows that are woven together."""
        return 4 // tiles.bytes_of(self.source)

    def place(self, k: ir.Value) -> ir.Value:
        """The block's row that has the numbers from k on; k counts from the chunk's."""
        if self.ring:
            k = arith.remui(k, index(self.ring))
        return add(self.start, divide(k, index(self.group)))

    def step(self, source: ir.Value, k: ir.Value, rows: int) -> None:
        """Weave all of a step, zeros behind its rows.

        source: its first row in the operand; k: the same, counted from the chunk's.
        """
        at = self.place(k)
        whole, alone = divmod(rows, self.group)
        ends = min(whole, tiles.ROWS), whole + bool(alone), tiles.ROWS
        begin = 0
        for end, there in zip(ends, (self.group, alone, 0), strict=True):
            if begin < end:

                def group(number: ir.Value, _: object, there: int = there) -> None:
                    ahead = multiply(number, index(self.group))
                    self.weave(add(source, ahead), add(at, number), there)

                emit_loop((begin, end), 1, [], group)
            begin = end

    def part(self, source: ir.Value, k: ir.Value, number: int, count: int) -> None:
        """Weave one of so many parts of a whole step, in no loop of its own."""
        at, share = self.place(k), tiles.ROWS // count
        for group in range(number * share, (number + 1) * share):
            ahead = index(group * self.group)
            self.weave(add(source, ahead), add(at, index(group)), self.group)

    def weave(self, source: ir.Value, at: ir.Value, there: int) -> None:
        """A group of rows; there: so many of them are rows of the operand's."""
        kind = ir.MemRefType(self.source.type).element_type
        none = filled(ir.VectorType.get([WIDTH], kind), 0)
        rows = [self.read(add(source, index(g))) for g in range(there)]
        woven = interleaved_panel(rows + [none] * (self.group - there))
        vector.store(woven, self.block, [at, index(0)])

    def read(self, row: ir.Value) -> ir.Value:
        """The columns of a row that are there, zeros behind them."""
        ivs = [index(0)] * self.indexing.n_dims
        ivs[self.row] = row
        place = [apply(e, ivs) for e in self.indexing.results]
        kind = ir.MemRefType(self.source.type)
        last = kind.rank - 1
        inside: ir.Value | None = None
        if kind.is_dynamic_dim(last):
            inside = memref.dim(self.source, index(last))
        elif kind.shape[last] < WIDTH:
            inside = index(kind.shape[last])
        return read_columns(self.source, place, WIDTH, inside)

    def tiles(self, k: ir.Value) -> list[ir.Value]:
        """The two tile registers of a step."""
        at, identity = [self.place(k), index(0)], ir.AffineMap.get_identity(2)
        starts = (
            tiles.address(self.block, identity, at, v * tiles.ROW_BYTES)
            for v in range(2)
        )
        return [tiles.load(start, tiles.ROWS, ROW_BYTES) for start in starts]


def interleaved_operand(op: Op, row: int, steps: int, chunks: int) -> InterleavedRows:
    """The block of a marked contraction with a flat operand.

    steps: of a chunk, the last part of one among them.
    """
    source, again, place = list(op.operation.operands)[1:4]
    places = op.operation.attributes[PLACES].value  # type: ignore[attr-defined]
    if chunks > 1:  # the block has the next chunk when an outer loop comes back
        again, place, places = index(0), index(0), 1
    kind = ir.MemRefType(source.type)
    width = ROW_BYTES // tiles.bytes_of(source)  # so many numbers of k are two steps
    if not op.operation.attributes[SHARED].value:  # type: ignore[attr-defined]
        block = room(op, 2 * tiles.ROWS, width, kind)
        return InterleavedRows(source, maps(op)[1], row, block, index(0), width, None)
    if places * steps * tiles.ROWS * ROW_BYTES > MOST_BYTES:
        raise Error(
            f"a right operand of {places * steps} steps has no room in a block",
            hint='with copied = "" each tile of rows weaves its own',
        )
    block = room(op, places * steps * tiles.ROWS, width, kind)
    start = multiply(place, index(steps * tiles.ROWS))
    return InterleavedRows(source, maps(op)[1], row, block, start, 0, again)
