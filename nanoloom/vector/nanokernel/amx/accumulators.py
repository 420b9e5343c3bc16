"""The sums of an AMX tile: from the result or a block to tile registers, and back."""

from __future__ import annotations

from functools import partial

from nanoloom.ir.access import add, index
from nanoloom.ir.linalg_query import maps
from nanoloom.ir.mlir import arith, ir, memref
from nanoloom.linalg.builder.pointwise import itself, pointwise
from nanoloom.nest.extent import Lanes
from nanoloom.vector.emit_loops import emit_branch
from nanoloom.vector.nanokernel.amx import instructions as tiles
from nanoloom.vector.nanokernel.amx.panels import LANES
from nanoloom.vector.nanokernel.amx.tile import Product, heights
from nanoloom.vector.nanokernel.amx.tile_edges import (
    WIDTH,
    place_of_dim,
    room_of,
    rows_from,
    whole_block,
)
from nanoloom.vector.subview import subview
from nanoloom.vector.vector_copies import along_rows


def write(
    product: Product, sums: list[ir.Value], at: ir.Value, own: ir.Value | None
) -> None:
    """Sums into the result, through a block where a tile reaches over its edge."""
    if not whole_columns(product.out):
        through_block(product, sums, at, own)
    elif own is None:
        store(product, sums, at)
    else:
        full = arith.cmpi(arith.CmpIPredicate.eq, own, index(product.height))
        edge = partial(through_block, product, sums, at, own)
        emit_branch(full, partial(store, product, sums, at), edge)


def through_block(
    product: Product, sums: list[ir.Value], at: ir.Value, own: ir.Value | None
) -> None:
    """Store whole tiles in a block and copy what is inside the result."""
    block = whole_block(product.op, product.height)
    put(sums, block, index(0), product.height)
    copy(product, block, at, own, back=False)


def copy(
    product: Product, block: ir.Value, at: ir.Value, own: ir.Value | None, *, back: bool
) -> None:
    """What of a block is inside the result there, or back: the tile's own rows, its
    last ones; the rest of the block stays unknown.

    at: the first row of the tile.
    """
    op, out, height = product.op, product.out, index(product.height)
    shift = index(0) if own is None else arith.subi(height, own)
    many, rank = height if own is None else own, ir.MemRefType(out.type).rank
    dims: list[ir.AffineExpr] = [ir.AffineDimExpr.get(d) for d in range(rank)]
    rows: ir.AffineExpr = ir.AffineConstantExpr.get(0)
    if product.row >= 0:
        place = place_of_dim(maps(op)[-1], product.row)
        out, rows = rows_from(out, place, add(at, shift), many), dims[place]
    # As wide as the result, so that a copy in either direction has its extents.
    part = subview(block, [shift, 0], [many, memref.dim(out, index(rank - 1))])
    there = ir.AffineMap.get(rank, 0, [rows, dims[-1]])
    sides = [(part, there), (out, ir.AffineMap.get_identity(rank))]
    (source, reading), (target, writing) = reversed(sides) if back else sides
    lanes = Lanes(op.operation.attributes[LANES].value)  # type: ignore[attr-defined] - MLIR's stubs know no kinds of attributes
    words = along_rows(rank, lanes)
    pointwise([source], target, itself, [reading], writing, words)


def sums_of(product: Product, at: ir.Value, own: ir.Value | None) -> list[ir.Value]:
    """Tile registers of what the result holds, nothing beyond it is loaded."""
    op, out, height = product.op, product.out, product.height
    if whole_columns(out):
        return [tiles.load(*place) for place in corners(product, at)]
    block = whole_block(op, height)
    copy(product, block, at, own, back=True)
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
    indexing = maps(product.op)[-1]
    distance = tiles.row_distance(product.out, indexing, product.row)
    ivs = product.begin(at)
    apart = product.apart(product.out, indexing)
    return tiles.places(product.out, indexing, ivs, product.parts, distance, apart)


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
    at, distance = [row, index(0)], 4 * WIDTH
    apart = tiles.ROWS * distance
    return tiles.places(block, identity, at, heights(height), distance, apart)
