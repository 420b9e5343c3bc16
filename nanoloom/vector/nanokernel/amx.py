"""AMX: a block of rows by 32 columns, tile after tile (amx_tile.py).

Takes the generics on buffers that vnni_panels.py has marked: bf16 with sums in f32,
bytes of any signs with sums in i32.

    for chunk of k: for tile of rows: sums[tile] += left[tile, chunk] * right[chunk]

A chunk of the panel, the left operand's rows of a tile and the tile's sums stay in the
first-level cache: tile registers want more than the second level gives.  Between the
chunks the sums of all rows lie in a block of their own, rows of 128 bytes; the first
chunk starts from zero, the last one writes the result.
"""

from __future__ import annotations

from dataclasses import dataclass

from nanoloom.kernels.structure import Op, inputs, is_generic, maps
from nanoloom.mlir import arith, ir, memref, scf
from nanoloom.vector.access import add, index, multiply
from nanoloom.vector.nanokernel import amx_instructions as tiles
from nanoloom.vector.nanokernel.amx_block import (
    WIDTH,
    copy_in,
    copy_out,
    place_of_dim,
    room,
    room_of,
    rows_from,
    whole_block,
)
from nanoloom.vector.nanokernel.amx_tile import Chunk, Product, accumulate, heights
from nanoloom.vector.nanokernel.vnni_panels import DEPTH, FRESH, HEIGHT, MARK, MOST


@dataclass(frozen=True)
class Rows:
    """The rows of a result: how many, and the tiles that they make.

    count: a value, None where whole tiles make all of them.
    """

    count: ir.Value | None
    tiles: int

    def first(self, number: ir.Value, height: int) -> ir.Value:
        """The first row of a tile; one over the edge begins earlier.

        Its first rows are computed again and not written.
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


def lower(op: Op) -> None:
    """Replace a marked generic on buffers by tile instructions."""
    marks = op.operation.attributes
    row, height, most, depth = (
        marks[name].value  # type: ignore[attr-defined]
        for name in (MARK, HEIGHT, MOST, DEPTH)
    )
    rows = rows_of(op, row, height, most)
    product = Product(op, row, height, rows.tiles)
    chunks = chunks_of(product, depth)
    out = op.operation.operands[2]
    if len(chunks) == 1:
        pass_over(product, rows, index(0), chunks[0], None, None)
    else:
        block = room(op, rows.tiles * height, WIDTH, ir.MemRefType(out.type))
        last, size = len(chunks) - 1, chunks[0][0]
        pass_over(product, rows, index(0), chunks[0], None, block)
        if last > 1:
            loop = scf.ForOp(index(1), index(last), index(1))
            with ir.InsertionPoint(loop.body):
                begin = multiply(loop.induction_variable, index(size))
                pass_over(product, rows, begin, chunks[1], block, block)
                scf.yield_([])
        pass_over(product, rows, index(last * size), chunks[last], block, None)
    if FRESH in marks:
        forget_fill(op, out)
    op.operation.erase()


def rows_of(op: Op, row: int, height: int, most: int) -> Rows:
    """most: how many rows there are at most."""
    out = op.operation.operands[2]
    place = place_of_dim(maps(op)[2], row)
    kind = ir.MemRefType(out.type)
    number = -(-most // height)
    if row < 0:
        return Rows(None, 1)
    if not kind.is_dynamic_dim(place) and kind.shape[place] % height == 0:
        return Rows(None, number)
    return Rows(memref.dim(out, index(place)), number)


def chunks_of(product: Product, depth: int) -> list[tuple[int, int]]:
    """Steps of each chunk of the sum, and what the last one has behind them.

    depth: numbers of a chunk, 0 for all of them.
    """
    size = depth // product.together or product.steps
    number = max(1, -(-product.steps // max(size, 1)))
    if len(product.reduced) > 1:
        number = 1
    size = -(-product.steps // number)
    whole = [(size, 0)] * (number - 1)
    return [*whole, (product.steps - size * (number - 1), product.rest)]


def pass_over(
    product: Product,
    rows: Rows,
    first: ir.Value,
    chunk: tuple[int, int],
    source: ir.Value | None,
    target: ir.Value | None,
) -> None:
    """A chunk for all tiles of rows, one after the other.

    first: the chunk's first step.  source, target: the block that sums come from and go
    to, None for what the operation says.
    """
    height = product.height
    part = Chunk(first, *chunk)
    if rows.tiles == 1:
        tile(product, rows, index(0), part, source, target)
        return
    end = index(rows.tiles)
    if rows.count is not None:
        end = arith.ceildivui(rows.count, index(height))
    loop = scf.ForOp(index(0), end, index(1))
    with ir.InsertionPoint(loop.body):
        tile(product, rows, loop.induction_variable, part, source, target)
        scf.yield_([])


def tile(
    product: Product,
    rows: Rows,
    number: ir.Value,
    chunk: Chunk,
    source: ir.Value | None,
    target: ir.Value | None,
) -> None:
    """One tile of a chunk, from where its sums are to where they go."""
    height = product.height
    at, own = rows.first(number, height), rows.own(number, height)
    if source is not None:
        begun = get(source, multiply(number, index(height)), height)
    elif FRESH in product.op.operation.attributes:
        begun = [tiles.zero(n) for n in product.parts for _ in range(2)]
    else:
        begun = sums_of(product, at, own)
    sums = accumulate(product, at, number, own, chunk, begun)
    if target is not None:
        put(sums, target, multiply(number, index(height)), height)
    else:
        write(product, sums, at, own)


def write(
    product: Product, sums: list[ir.Value], at: ir.Value, own: ir.Value | None
) -> None:
    """Sums into the result, through the stack where a tile reaches over its edge."""
    if not whole_columns(product.out):
        through_block(product, sums, at, own)
    elif own is None:
        store(product, sums, at)
    else:
        full = arith.cmpi(arith.CmpIPredicate.eq, own, index(product.height))
        either = scf.IfOp(full, has_else=True)
        with ir.InsertionPoint(either.then_block):
            store(product, sums, at)
            scf.yield_([])
        with ir.InsertionPoint(either.else_block):
            through_block(product, sums, at, own)
            scf.yield_([])


def through_block(
    product: Product, sums: list[ir.Value], at: ir.Value, own: ir.Value | None
) -> None:
    """Store whole tiles on the stack and copy what is inside the result."""
    block = whole_block(product.op, product.height)
    put(sums, block, index(0), product.height)
    copy_out(product.op, block, inside(product, at, own), product.height, own)


def inside(product: Product, at: ir.Value, own: ir.Value | None) -> ir.Value:
    """A tile's own rows of the result; at: the first row of the tile."""
    if product.row < 0:
        return product.out
    height = index(product.height)
    start = at if own is None else arith.subi(add(at, height), own)
    many = height if own is None else own
    place = place_of_dim(maps(product.op)[2], product.row)
    return rows_from(product.out, place, start, many)


def sums_of(product: Product, at: ir.Value, own: ir.Value | None) -> list[ir.Value]:
    """Tile registers of what the result holds, nothing beyond it is loaded."""
    op, out, height = product.op, product.out, product.height
    if whole_columns(out):
        return [tiles.load(*place) for place in corners(product, at)]
    block = whole_block(op, height)
    copy_in(op, block, inside(product, at, own), height, own)
    return get(block, index(0), height)


def whole_columns(out: ir.Value) -> bool:
    """Whether the result has room for all columns of the tile registers."""
    kind = ir.MemRefType(room_of(out).type)
    last = kind.rank - 1
    return not kind.is_dynamic_dim(last) and kind.shape[last] == WIDTH


def store(product: Product, sums: list[ir.Value], at: ir.Value) -> None:
    """Write a tile's sums into the result."""
    for value, place in zip(sums, corners(product, at), strict=True):
        tiles.store(value, *place)


def corners(product: Product, at: ir.Value) -> list[tuple[ir.Value, int, int]]:
    """Where the tile registers of a tile lie in the result."""
    indexing = maps(product.op)[2]
    distance = tiles.row_distance(product.out, indexing, product.row)
    ivs = product.begin(at)
    return tiles.places(product.out, indexing, ivs, product.parts, distance)


def put(sums: list[ir.Value], block: ir.Value, row: ir.Value, height: int) -> None:
    """Write a tile's sums into a block, from a row on."""
    for value, place in zip(sums, in_block(block, row, height), strict=True):
        tiles.store(value, *place)


def get(block: ir.Value, row: ir.Value, height: int) -> list[ir.Value]:
    """A tile's sums from a block."""
    return [tiles.load(*place) for place in in_block(block, row, height)]


def in_block(
    block: ir.Value, row: ir.Value, height: int
) -> list[tuple[ir.Value, int, int]]:
    identity = ir.AffineMap.get_identity(2)
    return tiles.places(block, identity, [row, index(0)], heights(height), 4 * WIDTH)


def forget_fill(op: Op, out: ir.Value) -> None:
    """Erase the zeros that were written where the sums go."""
    for other in list(op.operation.block.operations):
        if other.operation == op.operation:
            return
        operands = list(other.operation.operands)
        if is_generic(other) and not inputs(other) and operands == [out]:
            other.operation.erase()
