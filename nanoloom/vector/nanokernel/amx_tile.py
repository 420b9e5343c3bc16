"""One AMX tile: 32 x 32 sums in four tile registers (paper, Fig. 2c and Listing 3).

Reference loop, with G numbers of k together (2 of bf16, 4 bytes):

    for k in begin .. end step 16 G: for two halves r of the rows, c of the columns:
        sums[r][c] += left[r rows][k .. k + 16 G] * right[k .. k + 16 G][c columns]

The left operand is read as it is, 16 rows of 64 bytes at any distance; the panel
likewise.  Where a sum ends within such a row, zeros fill up both: the panel has them,
the left operand's last columns are copied.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

from nanoloom.kernels.contraction import element
from nanoloom.kernels.structure import Op, iterators, maps
from nanoloom.mlir import ir, scf
from nanoloom.vector.access import add, divide, index, multiply
from nanoloom.vector.nanokernel import amx_instructions as tiles
from nanoloom.vector.nanokernel.amx_block import last_columns, place_of_dim
from nanoloom.vector.nanokernel.fma import with_value
from nanoloom.vector.prefetch import prefetch_panel


@dataclass(frozen=True)
class Product:
    """A marked generic on buffers, and what its tiles have in common.

    row: the loop that the rows run along, -1 for a single row.  height: rows of a tile.
    tiles: how many of them share a panel.
    """

    op: Op
    row: int
    height: int
    tiles: int

    @property
    def left(self) -> ir.Value:
        return self.op.operation.operands[0]

    @property
    def right(self) -> ir.Value:
        return self.op.operation.operands[1]

    @property
    def out(self) -> ir.Value:
        return self.op.operation.operands[2]

    @cached_property
    def reduced(self) -> list[int]:
        return [d for d, k in enumerate(iterators(self.op)) if k == "reduction"]

    @cached_property
    def together(self) -> int:
        """Numbers of k in a row of a tile register."""
        return tiles.ROW_BYTES // tiles.bytes_of(self.right)

    @cached_property
    def depths(self) -> list[int]:
        """Extents of the reduced dimensions: outer ones of the panel, last of left."""
        kind = ir.MemRefType(self.right.type)
        outer = list(kind.shape)[-1 - len(self.reduced) : -2]
        shape = ir.MemRefType(self.left.type).shape
        return [*outer, shape[place_of_dim(maps(self.op)[0], self.reduced[-1])]]

    @property
    def steps(self) -> int:
        """Whole tile registers along the last reduced dimension."""
        return self.depths[-1] // self.together

    @property
    def rest(self) -> int:
        return self.depths[-1] % self.together

    @property
    def parts(self) -> list[int]:
        """Rows of each tile register that a tile takes."""
        return heights(self.height)

    def begin(self, at: ir.Value) -> list[ir.Value]:
        """The loop variables where the tile of this first row begins."""
        ivs = [index(0) for _ in iterators(self.op)]
        return ivs if self.row < 0 else with_value(ivs, self.row, at)


@dataclass(frozen=True)
class Chunk:
    """A part of the last reduced dimension: whole steps from `first`, and the rest."""

    first: ir.Value
    steps: int
    rest: int


def heights(height: int) -> list[int]:
    return [min(tiles.ROWS, height - start) for start in range(0, height, tiles.ROWS)]


def accumulate(
    product: Product,
    at: ir.Value,
    number: ir.Value,
    count: ir.Value | None,
    chunk: Chunk,
    begun: list[ir.Value],
) -> list[ir.Value]:
    """The reduction loops of the tile that begins at a row; gives its four sums.

    number: of the tile.  count: rows that are the tile's own, its last ones, None for
    all of them.  begun: the sums that it goes on from.
    """
    outer = product.depths[:-1]

    def nest(
        level: int, ivs: list[ir.Value], round_: ir.Value, sums: list[ir.Value]
    ) -> list[ir.Value]:
        if level == len(outer):
            return along(product, ivs, round_, count, chunk, sums)
        loop = scf.ForOp(index(0), index(outer[level]), index(1), sums)
        with ir.InsertionPoint(loop.body):
            iv = loop.induction_variable
            here = with_value(ivs, product.reduced[level], iv)
            following = add(multiply(round_, index(outer[level])), iv)
            carried = list(loop.inner_iter_args)
            scf.yield_(nest(level + 1, here, following, carried))
        return list(loop.results)

    return nest(0, product.begin(at), number, begun)


def along(
    product: Product,
    ivs: list[ir.Value],
    number: ir.Value,
    count: ir.Value | None,
    chunk: Chunk,
    sums: list[ir.Value],
) -> list[ir.Value]:
    """A chunk of the last reduced dimension: whole tile rows in a loop, then the rest.

    number: of the passes over this panel, this one included.
    """
    op, dim = product.op, product.reduced[-1]
    together = index(product.together)
    rows = LeftRows(product.left, maps(op)[0], product.row, product.parts)
    first = multiply(chunk.first, together)
    behind = with_value(ivs, dim, add(first, index(chunk.steps * product.together)))
    # In front of the loop: a tile register waits for what has just been written.
    block = (
        last_columns(op, behind, count, product.height, chunk.rest)
        if chunk.rest
        else None
    )
    if chunk.steps:
        end = index(chunk.steps * product.together)
        loop = scf.ForOp(index(0), end, together, sums)
        with ir.InsertionPoint(loop.body):
            iv = loop.induction_variable
            done = multiply(chunk.first, index(product.tiles))
            passed = add(multiply(number, index(chunk.steps)), divide(iv, together))
            prefetch(product, add(done, passed))
            here = with_value(ivs, dim, add(first, iv))
            carried = list(loop.inner_iter_args)
            scf.yield_(step(product, rows, here, here, carried))
        sums = list(loop.results)
    if block is None:
        return sums
    last = LeftRows(block, ir.AffineMap.get_identity(2), 0, product.parts)
    return step(product, last, [index(0)] * 2, behind, sums)


def prefetch(product: Product, number: ir.Value) -> None:
    """A round's share of the next panel; one that is woven lies in the cache."""
    reduced = len(product.reduced)
    if ir.MemRefType(product.right.type).rank > reduced + 1:
        rounds = product.tiles * product.steps * prod(product.depths[:-1])
        prefetch_panel(product.right, reduced, number, rounds, product.tiles == 1)


@dataclass(frozen=True)
class LeftRows:
    """Where the left operand's rows of a tile lie.

    row: the loop that they run along, -1 for a single row.  parts: how many of them go
    to each tile register.
    """

    buffer: ir.Value
    indexing: ir.AffineMap
    row: int
    parts: list[int]


def step(
    product: Product,
    left: LeftRows,
    at: list[ir.Value],
    ivs: list[ir.Value],
    sums: list[ir.Value],
) -> list[ir.Value]:
    """Load the tiles of one step and multiply each pair of them.

    at: the loop variables of the left operand's place, ivs: those of the right one's.
    """
    op, right = product.op, product.right
    distance = tiles.row_distance(left.buffer, left.indexing, left.row)
    instruction = tiles.PRODUCTS[element(op, 0), element(op, 1)]
    below = tiles.row_distance_of(right)
    starts = [
        tiles.address(right, maps(op)[1], ivs, v * tiles.ROW_BYTES) for v in range(2)
    ]
    panels = [tiles.load(start, tiles.ROWS, below) for start in starts]
    made: list[ir.Value] = []
    for part, rows in enumerate(left.parts):
        ahead = part * tiles.ROWS * distance
        start = tiles.address(left.buffer, left.indexing, at, ahead)
        tile = tiles.load(start, rows, distance)
        made += [
            tiles.multiply(instruction, rows, sums[2 * part + v], tile, panels[v])
            for v in range(2)
        ]
    return made
