"""The families of nanokernels by name: which function makes the sums of a tile."""

from __future__ import annotations

from typing import TypeVar

from nanoloom.ir.contraction import elements
from nanoloom.ir.mlir import ir, vector
from nanoloom.schedule.families import GROUP_PRODUCTS, INT8_INNER
from nanoloom.target.facts import Target
from nanoloom.target.instructions.choose import differing_bits, pair_use
from nanoloom.vector.nanokernel import (
    bit_pairs,
    bit_tables,
    fma,
    group_products,
    guarded_sums,
    inner_products,
    single_products,
)
from nanoloom.vector.nanokernel.operands import fma_panel
from nanoloom.vector.nanokernel.operands.convert_lhs import convert_lhs
from nanoloom.vector.nanokernel.operands.flat_panel import copy_right
from nanoloom.vector.nanokernel.operands.guarded_lhs import (
    Fill,
    GuardedLhs,
    GuardedRead,
)
from nanoloom.vector.nanokernel.reduction_loops import (
    nest,
    start_values,
    unrolled,
    vector_kind,
)
from nanoloom.vector.nanokernel.tile.tile import Tile

T = TypeVar("T")

# Of a family the instruction that multiplies groups, or how numbers are widened.
GROUPS = {
    **GROUP_PRODUCTS,
    "bit-counts": differing_bits,
}
WIDENINGS = {
    "bf16-convert": single_products.LOADED,
    "bf16-halves": single_products.HALVES,
    "int8-lanes": single_products.EXTENDED,
}


def copy_rows(tile: Tile, target: Target) -> None:
    """What versions of a tile share: a copy of its rows, if they read such a one."""
    left, right, _ = elements(tile.op, tile.shape)
    signed = left.startswith("s"), right.startswith("s")
    if tile.plan.family == INT8_INNER.name:
        inner_products.copy_rows(tile, known(pair_use(target, left, right)), signed)
    elif tile.plan.family in GROUPS:
        use = known(GROUPS[tile.plan.family](target, left, right))
        group_products.copy_rows(tile, use, signed)


def accumulate(tile: Tile, target: Target) -> list[ir.Value]:
    """Emit the loops of a tile that fits its family; gives rows * vectors sums."""
    left, right, _ = elements(tile.op, tile.shape)
    signed = left.startswith("s"), right.startswith("s")
    if tile.plan.copy_rhs and tile.plan.family == "fma":
        return fma_panel.accumulate(tile)
    if tile.plan.copy_rhs:
        copy_right(tile)
    family = tile.plan.family
    if family == INT8_INNER.name:
        use = known(pair_use(target, left, right))
        return inner_products.accumulate(tile, use, signed)
    if family in GROUPS:
        use = known(GROUPS[family](target, left, right))
        return group_products.accumulate(tile, use, signed)
    if family in WIDENINGS:
        return single_products.accumulate(tile, WIDENINGS[family], signed)
    if family == "bit-pairs":
        return bit_pairs.accumulate(tile)
    if family == "bit-tables":
        return bit_tables.accumulate(tile, target)
    return multiply_adds(tile, target)


def multiply_adds(tile: Tile, target: Target) -> list[ir.Value]:
    """Of an operand as it is, in a wider type, or guarded."""
    lhs = GuardedLhs.of(tile)
    if lhs is not None:
        start = start_values(tile, vector_kind(tile))
        family, adds = guarded_products(tile), float(lhs.number) != 0
        return guarded_sums.accumulate(tile, lhs, family, start, adds=adds)
    sums = ir.RankedTensorType(tile.op.operation.operands[2].type).element_type
    convert_lhs(tile, sums)
    return fma.accumulate(tile, target)


def guarded_products(tile: Tile) -> guarded_sums.Family:
    """Multiply-adds of numbers that are guarded."""
    kind, column = vector_kind(tile), fma.right_column(tile)

    def family(read: GuardedRead | Fill, rows: list[ir.Value]) -> guarded_sums.Through:
        def number(ivs: list[ir.Value], row: int) -> ir.Value:
            return vector.broadcast(kind, read.number(ivs, row))

        step = fma.product_step(tile, column, number, rows)
        return lambda dims, ivs, sums, limits: nest(
            tile, dims, ivs, sums, step, unrolled, limits=limits
        )

    return family


def known(found: T | None) -> T:
    assert found is not None, "fit.py lets no other pass"
    return found
