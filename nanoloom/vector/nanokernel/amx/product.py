"""AMX: a block of rows by 32 columns, tile after tile (tile.py).

Takes the generics on buffers that panels.py has marked: bf16 with sums in f32,
bytes of any signs with sums in i32.

    for chunk of k: for tile of rows: sums[tile] += left[tile, chunk] * right[chunk]

A chunk of the panel, the left operand's rows of a tile and the tile's sums stay in the
first-level cache: tile registers want more than the second level gives.  Between the
chunks the sums of all rows lie in a block of their own, rows of 128 bytes; the first
chunk starts from zero, the last one writes the result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from nanoloom.ir.access import constant_of, index, multiply
from nanoloom.ir.linalg_query import Op, inputs, is_generic, maps
from nanoloom.ir.mlir import arith, ir, memref
from nanoloom.schedule.directives.prefetch import Prefetch
from nanoloom.schedule.families import IMAGE_ROWS
from nanoloom.vector.emit_loops import emit_branch, emit_loop
from nanoloom.vector.nanokernel.amx import instructions as tiles
from nanoloom.vector.nanokernel.amx.accumulators import get, put, sums_of, write
from nanoloom.vector.nanokernel.amx.panels import (
    ARGUMENT,
    DEPTH,
    FRESH,
    HEIGHT,
    HIGH,
    MARK,
    MOST,
    PLACES,
)
from nanoloom.vector.nanokernel.amx.tile import Chunk, Product, accumulate
from nanoloom.vector.nanokernel.amx.tile_edges import WIDTH, place_of_dim, room
from nanoloom.vector.nanokernel.amx.unpacked_operands import interleaved_operand
from nanoloom.vector.reduction_init import root
from nanoloom.vector.scratch_memory import ask_in_front


@dataclass(frozen=True)
class Rows:
    """The rows of a result: how many, and the tiles that they make.

    count: a value, None where whole tiles make all of them.  alone: rows of the last
    tile, where that is one of fewer.
    """

    count: ir.Value | None
    tiles: int
    alone: int = 0

    def first(self, number: ir.Value, height: int) -> ir.Value:
        """The first row of a tile; one over the edge begins earlier.

        Its first rows are computed again and not written.  There may be fewer rows in
        all: what lies in front of a task's own temporary is asked for (`read_before`).
        """
        at = multiply(number, index(height))
        if self.count is None:
            return at
        return arith.minsi(at, arith.subi(self.count, index(height)))

    def own(self, number: ir.Value, height: int) -> ir.Value | None:
        """How many rows of a tile are its own, its last ones; None for all."""
        if self.count is None:
            return None
        left = arith.subi(self.count, multiply(number, index(height)))
        return arith.minsi(left, index(height))


def lower(op: Op, prefetches: Mapping[int, Prefetch]) -> None:
    """Replace a marked generic on buffers by tile instructions.

    prefetches: of which of the kernel's arguments.
    """
    marks = op.operation.attributes
    row, high, height, most, depth = (
        marks[name].value  # type: ignore[attr-defined]
        for name in (MARK, HIGH, HEIGHT, MOST, DEPTH)
    )
    wide = 0 if high < 0 else most
    if high >= 0:
        height, rows = IMAGE_ROWS, rows_of_image(op, high)
    else:
        rows = rows_of(op, row, height, most)
    if rows.count is not None:
        read_before(op, row, height)
    fetched = prefetches.get(marks[ARGUMENT].value) if ARGUMENT in marks else None  # type: ignore[attr-defined]
    product = Product(op, row, height, rows.tiles, high, wide, fetched)
    chunks = chunks_of(product, depth)
    if PLACES in marks:
        deepest = max(chunk.steps + bool(chunk.rest) for chunk in chunks)
        woven = interleaved_operand(op, product.reduced[-1], deepest, len(chunks))
        product = replace(product, woven=woven)
    out, last = product.out, len(chunks) - 1
    if last == 0:
        Pass(product, rows).over(chunks[0])
    else:
        block = room(op, rows.tiles * height, WIDTH, ir.MemRefType(out.type))
        Pass(product, rows, target=block).over(chunks[0])
        if last > 1:

            def between(number: ir.Value, _: object) -> None:
                size = chunks[1].steps * product.together
                begin = multiply(number, index(size))
                chunk = replace(chunks[1], begin=begin)
                Pass(product, rows, block, block).over(chunk)

            emit_loop((1, last), 1, [], between)
        Pass(product, rows, source=block).over(chunks[last])
    if FRESH in marks:
        drop_init(op, out)
    op.operation.erase()


def rows_of(op: Op, row: int, height: int, most: int) -> Rows:
    """most: how many rows there are at most."""
    out = op.operation.operands[-1]
    if row < 0:
        return Rows(None, 1)
    place = place_of_dim(maps(op)[-1], row)
    kind = ir.MemRefType(out.type)
    number = -(-most // height)
    if not kind.is_dynamic_dim(place) and kind.shape[place] % height == 0:
        return Rows(None, number)
    return Rows(memref.dim(out, index(place)), number)


def rows_of_image(op: Op, high: int) -> Rows:
    """The rows of an image, by pairs; the last one may be alone."""
    out = op.operation.operands[-1]
    extent = ir.MemRefType(out.type).shape[place_of_dim(maps(op)[-1], high)]
    return Rows(None, -(-extent // IMAGE_ROWS), extent % IMAGE_ROWS)


def read_before(op: Op, row: int, height: int) -> None:
    """Have memory where a tile over the edge begins to read, up to a tile's height
    before the first row: arguments have rows there, a task's temporaries have none."""
    for operand, way in ((0, maps(op)[0]), (-1, maps(op)[-1])):
        buffer = op.operation.operands[operand]
        if isinstance(root(buffer).owner, ir.Block):
            continue
        distance = tiles.row_distance(buffer, way, row)
        assert distance >= 0, "a temporary's shape is known"
        ask_in_front(op, height * distance)


def chunks_of(product: Product, depth: int) -> list[Chunk]:
    """The chunks of the sum, all alike but for the last one.

    depth: numbers of a chunk, 0 for all of them.
    """
    size = depth // product.together or product.steps
    number = max(1, -(-product.steps // max(size, 1)))
    if len(product.reduced) > 1:
        number = 1
    size = -(-product.steps // number)
    begins = [index(size * product.together * n) for n in range(number)]
    left = product.steps - size * (number - 1)
    whole = [Chunk(begin, size, 0) for begin in begins[:-1]]
    return [*whole, Chunk(begins[-1], left, product.rest)]


@dataclass(frozen=True)
class Pass:
    """All tiles of rows for a chunk of the sum, one after the other.

    source, target: the block that sums come from and go to, None for what the operation
    says.
    """

    product: Product
    rows: Rows
    source: ir.Value | None = None
    target: ir.Value | None = None

    def over(self, chunk: Chunk) -> None:
        """The first tile that reads a part of a flat operand weaves it."""
        woven = self.product.woven
        if woven is None:
            self.tiles(0, chunk)
        elif woven.again is None:
            self.tiles(0, replace(chunk, weaves=True))
        elif constant_of(woven.again) == 0:
            self.weaving(chunk)
        else:
            new = arith.cmpi(arith.CmpIPredicate.eq, woven.again, index(0))
            emit_branch(new, lambda: self.weaving(chunk), lambda: self.tiles(0, chunk))

    def weaving(self, chunk: Chunk) -> None:
        """The first tile weaves for all of them."""
        self.tile(index(0), replace(chunk, weaves=True))
        if self.rows.tiles > 1:
            self.tiles(1, chunk)

    def tiles(self, begin: int, chunk: Chunk) -> None:
        """The tiles from one on."""
        if self.rows.tiles == 1:
            self.tile(index(0), chunk)
            return
        whole = self.rows.tiles - bool(self.rows.alone)
        end: int | ir.Value = whole
        if self.rows.count is not None:
            end = arith.ceildivui(self.rows.count, index(self.product.height))
        emit_loop((begin, end), 1, [], lambda number, _: self.tile(number, chunk))
        if self.rows.alone:
            last = replace(self.product, height=self.rows.alone)
            first = index(whole * self.product.height)
            replace(self, product=last).tile(first, chunk)

    def tile(self, number: ir.Value, chunk: Chunk) -> None:
        """One tile, from where its sums are to where they go."""
        product, height = self.product, self.product.height
        at, own = self.rows.first(number, height), self.rows.own(number, height)
        place = multiply(number, index(height))
        if self.source is not None:
            begun = get(self.source, place, height)
        elif FRESH in product.op.operation.attributes:
            begun = [tiles.zero(n) for n in product.parts for _ in range(2)]
        else:
            begun = sums_of(product, at, own)
        sums = accumulate(product, at, number, own, chunk, begun)
        if self.target is not None:
            put(sums, self.target, place, height)
        else:
            write(product, sums, at, own)


def drop_init(op: Op, out: ir.Value) -> None:
    """Erase the zeros that were written where the sums go."""
    for other in list(op.operation.block.operations):
        if other.operation == op.operation:
            return
        operands = list(other.operation.operands)
        if is_generic(other) and not inputs(other) and operands == [out]:
            other.operation.erase()
