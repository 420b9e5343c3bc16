"""The sums of an AMX tile: from the result or a block to tile registers, and back."""

from __future__ import annotations

from functools import partial

from nanoloom.ir.access import add, index
from nanoloom.ir.linalg_query import maps
from nanoloom.ir.mlir import arith, ir
from nanoloom.vector.emit_loops import emit_branch
from nanoloom.vector.nanokernel.amx import instructions as tiles
from nanoloom.vector.nanokernel.amx.tile import Product, heights
from nanoloom.vector.nanokernel.amx.tile_edges import (
    WIDTH,
    copy_in,
    copy_out,
    place_of_dim,
    room_of,
    rows_from,
    whole_block,
)


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
    copy_out(product.op, block, inside(product, at, own), product.height, own)


def inside(product: Product, at: ir.Value, own: ir.Value | None) -> ir.Value:
    """A tile's own rows of the result; at: the first row of the tile."""
    if product.row < 0:
        return product.out
    height = index(product.height)
    start = at if own is None else arith.subi(add(at, height), own)
    many = height if own is None else own
    place = place_of_dim(maps(product.op)[-1], product.row)
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
