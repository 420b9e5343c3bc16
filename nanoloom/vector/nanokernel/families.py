"""The families of nanokernels by name: which function makes the sums of a tile."""

from __future__ import annotations

from functools import partial
from typing import TypeVar

from nanoloom.kernels.contraction import elements
from nanoloom.mlir import ir
from nanoloom.target.facts import Target
from nanoloom.target.instructions.choose import counts_words, dot_for, pair_use
from nanoloom.vector.nanokernel import (
    bit_counts,
    bit_pairs,
    bit_tables,
    fma,
    group_products,
    last_panel,
    single_products,
)
from nanoloom.vector.nanokernel.operands import fma_panel, unpadded_fma
from nanoloom.vector.nanokernel.operands.convert_lhs import convert_lhs
from nanoloom.vector.nanokernel.operands.flat_panel import copy_right
from nanoloom.vector.nanokernel.operands.unpadded_lhs import UnpaddedImage
from nanoloom.vector.nanokernel.tile.tile import Tile

T = TypeVar("T")

# Of a family the instruction that multiplies groups, or how numbers are widened.
GROUPS = {
    "bf16-dot": dot_for,
    "int8-dot": dot_for,
    "int8-pairs": pair_use,
    "int16-pairs": pair_use,
}
WIDENINGS = {
    "bf16-convert": single_products.LOADED,
    "bf16-halves": single_products.HALVES,
    "int8-lanes": single_products.EXTENDED,
}
DIFFERING = "bit-pairs", "bit-tables", "bit-counts"


def accumulate(tile: Tile, target: Target) -> list[ir.Value]:
    """Emit the loops of a tile that fits its family; gives rows * vectors sums."""
    left, right, _ = elements(tile.op, tile.shape)
    signed = left.startswith("s"), right.startswith("s")
    if tile.plan.copy_rhs and tile.plan.family == "fma":
        return fma_panel.accumulate(tile)
    if tile.plan.copy_rhs:
        copy_right(tile)
    family = tile.plan.family
    if family in GROUPS:
        use = known(GROUPS[family](target, left, right))
        return group_products.accumulate(tile, use, signed)
    if family in WIDENINGS:
        return single_products.accumulate(tile, WIDENINGS[family], signed)
    if family in DIFFERING:
        return differing(tile, target)
    return last_panel.accumulate(tile, partial(multiply_adds, target=target))


def multiply_adds(tile: Tile, target: Target) -> list[ir.Value]:
    """Of an operand as it is, in a wider type, or within its border."""
    operand = UnpaddedImage.of(tile)
    if operand is not None:
        return unpadded_fma.accumulate(tile, operand)
    sums = ir.RankedTensorType(tile.op.operation.operands[2].type).element_type
    convert_lhs(tile, sums)
    return fma.accumulate(tile, target)


def differing(tile: Tile, target: Target) -> list[ir.Value]:
    """Sums of bits that differ."""
    if tile.plan.family == "bit-pairs":
        return bit_pairs.accumulate(tile)
    if tile.plan.family == "bit-tables":
        return bit_tables.accumulate(tile, target)
    return bit_counts.accumulate(tile, counts_words(target))


def known(found: T | None) -> T:
    assert found is not None, "fit.py lets no other pass"
    return found
