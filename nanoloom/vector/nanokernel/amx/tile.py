"""One AMX tile: 32 x 32 sums in four tile registers (paper, Fig. 2c and Listing 3).

Reference loop, with G numbers of k together (2 of bf16, 4 bytes):

    for k in begin .. end step 16 G: for two halves r of the rows, c of the columns:
        sums[r][c] += left[r rows][k .. k + 16 G] * right[k .. k + 16 G][c columns]

The left operand is read as it is, 16 rows of 64 bytes at any distance; the panel
likewise.  Where a sum ends within such a row, zeros fill up both: the panel has them,
the left operand's last columns are copied.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from math import prod

from nanoloom.ir.access import add, divide, index, multiply
from nanoloom.ir.linalg_query import Op, iterators, maps
from nanoloom.ir.loop_nest import element
from nanoloom.ir.mlir import ir
from nanoloom.schedule.directives.prefetch import Prefetch
from nanoloom.vector.emit_loops import emit_loop
from nanoloom.vector.nanokernel.amx import instructions as tiles
from nanoloom.vector.nanokernel.amx.panels import SUM
from nanoloom.vector.nanokernel.amx.step import Between, LhsRows, no_loads, step
from nanoloom.vector.nanokernel.amx.tile_edges import last_columns
from nanoloom.vector.nanokernel.amx.unpacked_operands import InterleavedRows
from nanoloom.vector.panel_iteration import PanelIteration
from nanoloom.vector.prefetch import prefetch
from nanoloom.vector.tile_points import with_value


@dataclass(frozen=True)
class Product:
    """A marked generic on buffers, and what its tiles have in common.

    row: the loop that the rows run along, -1 for a single row.  height: rows of a tile.
    tiles: how many of them share a panel.  fetched: how the next panel comes before it
    is read, if a schedule says so.  woven: where a flat right operand goes.  high: the
    loop over an image's rows, where each of a tile's registers has the pixels of one
    such row, `wide` of them, and `height` is how many registers; else -1.
    """

    op: Op
    row: int
    height: int
    tiles: int
    high: int = -1
    wide: int = 0
    fetched: Prefetch | None = None
    woven: InterleavedRows | None = None

    @property
    def left(self) -> ir.Value:
        return self.op.operation.operands[0]

    @property
    def right(self) -> ir.Value:
        return self.op.operation.operands[1]

    @property
    def out(self) -> ir.Value:
        return self.op.operation.operands[-1]

    @cached_property
    def reduced(self) -> list[int]:
        return [d for d, k in enumerate(iterators(self.op)) if k == "reduction"]

    @cached_property
    def together(self) -> int:
        """Numbers of k in a row of a tile register."""
        return tiles.ROW_BYTES // tiles.bytes_of(self.right)

    @cached_property
    def depths(self) -> list[int]:
        """Extents of the reduced dimensions; panels have more of the last one."""
        kind = ir.MemRefType(self.right.type)
        outer = list(kind.shape)[-1 - len(self.reduced) : -2]
        return [*outer, self.op.operation.attributes[SUM].value]  # type: ignore[attr-defined] - MLIR's stubs know no kinds of attributes

    @property
    def instruction(self) -> str:
        return tiles.PRODUCTS[element(self.op, 0), element(self.op, 1)]

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
        return [self.wide] * self.height if self.high >= 0 else heights(self.height)

    def apart(self, buffer: ir.Value, indexing: ir.AffineMap) -> int:
        """Bytes of an operand from one tile register's first row to the next one's."""
        if self.high >= 0:
            return tiles.row_distance(buffer, indexing, self.high)
        return tiles.ROWS * tiles.row_distance(buffer, indexing, self.row)

    def begin(self, at: ir.Value) -> list[ir.Value]:
        """The loop variables where the tile of this first row begins."""
        ivs = [index(0) for _ in iterators(self.op)]
        moved = self.row if self.high < 0 else self.high
        return ivs if moved < 0 else with_value(ivs, moved, at)

    def panels(self, ivs: list[ir.Value], k: ir.Value) -> list[ir.Value]:
        """The right operand's two tiles of a step; k counts from the chunk's first."""
        if self.woven is not None:
            return self.woven.tiles(k)
        indexing, below = maps(self.op)[1], tiles.row_distance_of(self.right)
        starts = [
            tiles.address(self.right, indexing, ivs, v * tiles.ROW_BYTES)
            for v in range(2)
        ]
        return [tiles.load(start, tiles.ROWS, below) for start in starts]


@dataclass(frozen=True)
class Chunk:
    """A part of the last reduced dimension: whole steps from `begin`, and the rest.

    weaves: whether its part of a flat right operand is still to be woven.
    """

    begin: ir.Value
    steps: int
    rest: int
    weaves: bool = False


Step = Callable[[ir.Value, list[ir.Value], Between], list[ir.Value]]


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

        def inside(iv: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
            here = with_value(ivs, product.reduced[level], iv)
            following = add(multiply(round_, index(outer[level])), iv)
            return nest(level + 1, here, following, carried)

        return emit_loop((0, outer[level]), 1, sums, inside)

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
    op, dim, name = product.op, product.reduced[-1], product.instruction
    end = index(chunk.steps * product.together)
    behind = with_value(ivs, dim, add(chunk.begin, end))
    # In front of the loop: a tile register waits for what has just been written.
    block = (
        last_columns(op, behind, count, product.height, chunk.rest)
        if chunk.rest
        else None
    )
    way, parts = maps(op)[0], product.parts
    apart = product.apart(product.left, way)
    rows = LhsRows(product.left, way, product.row, parts, apart)

    def whole(k: ir.Value, sums: list[ir.Value], between: Between) -> list[ir.Value]:
        here = with_value(ivs, dim, add(chunk.begin, k))
        fetch(product, chunk, number, k)
        return step(rows, here, product.panels(here, k), sums, name, between)

    if product.woven is not None and chunk.weaves:
        sums = weave_along(product.woven, product.together, chunk, sums, whole)
    else:
        sums = rounds(chunk.steps, product.together, sums, whole, lambda _: no_loads)
    if block is None:
        return sums
    apart = tiles.ROWS * tiles.ROW_BYTES
    last = LhsRows(block, ir.AffineMap.get_identity(2), 0, parts, apart)
    panels = product.panels(behind, end)
    return step(last, [index(0)] * 2, panels, sums, name, no_loads)


def rounds(
    steps: int,
    together: int,
    sums: list[ir.Value],
    whole: Step,
    between: Callable[[ir.Value], Between],
) -> list[ir.Value]:
    """So many steps in a loop over k; between: what goes between products, for a k."""
    if steps <= 0:
        return sums
    bounds = 0, steps * together
    return emit_loop(bounds, together, sums, lambda k, now: whole(k, now, between(k)))


def weave_along(
    woven: InterleavedRows,
    together: int,
    chunk: Chunk,
    sums: list[ir.Value],
    whole: Step,
) -> list[ir.Value]:
    """The whole steps of a chunk; each weaves what the one behind it multiplies.

    The first one finds its rows woven, the last one weaves the rest of the chunk.
    """
    woven.step(chunk.begin, index(0), together if chunk.steps else chunk.rest)
    if not chunk.steps:
        return sums

    def following(k: ir.Value) -> Between:
        ahead = add(k, index(together))
        return partial(woven.part, add(chunk.begin, ahead), ahead)

    sums = rounds(chunk.steps - 1, together, sums, whole, following)
    end = index(chunk.steps * together)
    if chunk.rest:
        woven.step(add(chunk.begin, end), end, chunk.rest)
    return whole(index((chunk.steps - 1) * together), sums, no_loads)


def fetch(product: Product, chunk: Chunk, number: ir.Value, k: ir.Value) -> None:
    """A round's share of the next panel, where the schedule asks for it.

    The panel is one of an argument's: the next one begins behind it.
    """
    if product.fetched is None:
        return
    together, once = index(product.together), not product.fetched.loops
    done = multiply(divide(chunk.begin, together), index(product.tiles))
    passed = add(multiply(number, index(chunk.steps)), divide(k, together))
    rounds = product.tiles * product.steps * prod(product.depths[:-1])
    shape = ir.MemRefType(product.right.type).shape
    outer = len(shape) - 1 - len(product.reduced)
    following = [*[index(0)] * (outer - 1), index(int(not once)), index(0)]
    extent, number = shape[outer], add(done, passed)
    round_ = PanelIteration(tuple(following), extent, number, rounds, once)
    prefetch(product.right, round_, product.fetched)
