"""Families of nanokernels: what each multiplies, and what a step of it costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isqrt

from nanoloom.schedule.step_cost import FMA, StepCost
from nanoloom.target.facts import MatrixUnit, Target
from nanoloom.target.instructions.choose import (
    DotUse,
    counts_words,
    dot_for,
    pair_products,
    pair_use,
)

BYTES = tuple((a, b, "i32") for a in ("s8", "u8") for b in ("s8", "u8"))
HALVES = (("bf16", "bf16", "f32"),)
PAIRS = (*HALVES, ("f16", "f16", "f32"))
BITS = (("b8", "b8", "i32"),)
FLOATS = (
    ("f32", "f32", "f32"),
    ("f64", "f64", "f64"),
    ("bf16", "bf16", "f32"),
    ("f16", "f16", "f32"),
)

AMX = MatrixUnit()
TILE_STEPS = AMX.rows  # groups in a row of a tile register
# Tile registers of sums below each other, and beside each other, so that those of both
# operands are there, too: four of eight (the paper's Fig. 2c).
SIDE = isqrt(AMX.tiles + 1) - 1
TILE_ROWS = AMX_COLUMNS = SIDE * AMX.rows  # of a tile of sums
IMAGE_ROWS = SIDE  # of an image, whose pixels such a tile has, in their own registers


# What says the instruction that multiplies groups, of target and types, by family.
GROUP_PRODUCTS: Mapping[str, Callable[[Target, str, str], DotUse | None]] = {
    "bf16-dot": dot_for,
    "int8-dot": dot_for,
    "int8-pairs": pair_use,
    "int16-pairs": pair_use,
}


@dataclass(frozen=True)
class Family:
    """A nanokernel's instructions.

    elements: of the left and right operand and of the sums.  group: so many steps of
    the last reduced dimension lie together in a panel.  flat_cost: of a step of rows
    that are not packed, where one is read at a time, not a group.  tiles: of a matrix
    unit, not of vector registers.  widens: the left operand can be a copy in a wider
    type.  woven: so many groups are multiplied by one another: a panel has a multiple.
    versions: a last tile of panels computes the rows that it has, and no others.
    """

    name: str
    elements: tuple[tuple[str, str, str], ...]
    group: int
    cost: StepCost = FMA
    flat_cost: StepCost | None = None
    tiles: bool = False
    widens: bool = False
    woven: int = 1
    versions: bool = False

    @property
    def steps(self) -> int:
        """A panel has a multiple of so many groups: what is loaded at once."""
        return TILE_STEPS if self.tiles else self.woven

    def groups(self, extent: int) -> int:
        """Groups of a panel for a sum over this extent, zeros behind it among them."""
        return -(-extent // (self.group * self.steps)) * self.steps


FMA_FAMILY = Family("fma", FLOATS, 1, widens=True, versions=True)
AMX_BF16 = Family("amx-bf16", HALVES, 2, tiles=True)
AMX_INT8 = Family("amx-int8", BYTES, 4, tiles=True)
# Outer products of vectors of any length (vector/nanokernel/sme).
SME = Family("sme", (("f32", "f32", "f32"),), 1, tiles=True)
BF16_DOT = Family("bf16-dot", PAIRS, 2)
# Even and odd numbers are converted as they are loaded: two loads for each of them.  A
# flat row takes as many for a product, and as long in llvm-mca.  Its figures for them
# are of other conversions, two operations and no load: the paper's Fig. 7 decides.
BF16_CONVERT = Family(
    "bf16-convert",
    HALVES,
    2,
    StepCost(2, left_loads=2, right_loads=2, others=2),
    flat_cost=StepCost(together=2),
)
# A shift and an and for a vector, its mask in a register.  Two loads of a row's pair
# count as three: a tile of many rows is slower than loads and products alone, measured.
# Of a flat row a load, a shift and an and are two vectors: up to 15 % faster than fma's
# conversions in place on AVX-512 and AVX2, and for a single row by 40 %, measured.
BF16_HALVES = Family(
    "bf16-halves",
    HALVES,
    2,
    StepCost(2, right=2, left_loads=3, right_registers=2, others=2, widened=64),
    flat_cost=StepCost(
        right=1, shifts=0.5, right_loads=0.5, others=2, widened=32, together=2
    ),
    widens=True,
)
INT8_DOT = Family("int8-dot", BYTES, 4)
# A vector is extended as it is loaded.
INT8_PAIRS = Family(
    "int8-pairs",
    BYTES,
    2,
    StepCost(1, 1, right=1, others=2, widened=32),
    widens=True,
    versions=True,
)
# Two additions of 16-bit numbers, a product and its addition are four steps of a sum
# (vector/nanokernel/inner_products.py).  Two vectors of a row, and two of factors, are
# in registers beside two of each column.
INT8_INNER = Family(
    "int8-inner",
    BYTES,
    2,
    StepCost(0.5, 1.5, right_registers=2, others=4),
    widens=True,
    woven=2,
    versions=True,
)
# vpmaddwd of numbers that are 16 bits wide: nothing is widened.
INT16_PAIRS = Family(
    "int16-pairs", (("s16", "s16", "i32"),), 2, StepCost(1, 1, others=2)
)
INT8_LANES = Family(
    "int8-lanes", BYTES, 1, StepCost(2, 1, right=1, others=3, widened=32), widens=True
)
# An xor, the six instructions that count the ones of bytes by a table of sixteen, and
# an addition: all of them of any kind.  The table and its mask are in registers.
BIT_COUNTS = Family("bit-counts", BITS, 4, StepCost(1, 7, others=5))
# An xor, a ternary operation, a count and an addition for two words; where those of a
# row differ, an operation beside the columns.  A column's words are two lines, of deep
# panels from the second-level cache: as long as three loads each.  Five registers are
# beside sums and columns: 5x4 vectors, which have four, took 1.2 to 2 times as long as
# 4x4.
BIT_PAIRS = Family(
    "bit-pairs",
    BITS,
    8,
    StepCost(1, 3, left=1, left_loads=3, right_loads=6, right_registers=2, others=5),
)
# Two shuffles and two additions, of bytes; the columns' halves are three operations,
# the rows' two pieces of the table loads behind a load.
BIT_TABLES = Family(
    "bit-tables",
    BITS,
    1,
    StepCost(
        2,
        2,
        right=3,
        left_loads=3,
        right_registers=2,
        others=2,
        widened=16,
        together=4,
        narrow=4,
    ),
    widens=True,
)
# Rows that a panel is read for once, from memory: what would ask for it keeps its own
# loads waiting.  As measured: 2 to 4 take 0.83 of the time without, 7 and 8 are alike.
FEW_ROWS = 6
FAMILIES = {
    family.name: family
    for family in (
        FMA_FAMILY, AMX_BF16, AMX_INT8, SME, BF16_DOT, BF16_CONVERT, BF16_HALVES,
        INT8_DOT, INT8_INNER, INT8_PAIRS, INT16_PAIRS, INT8_LANES, BIT_PAIRS,
        BIT_TABLES, BIT_COUNTS,
    )
}  # fmt: skip


def has_family(
    target: Target, family: Family, left: str, right: str, packed: bool
) -> bool:
    """Whether a target has what a family is made of, for these types of operands.

    packed: whether the right operand comes as panels, which may hold sums of columns.
    """
    if family in (BF16_DOT, INT8_DOT):
        use = dot_for(target, left, right)
        return use is not None and (packed or not use.flipped)
    if family is BIT_TABLES:
        return packed and target.has("avx2") and not counts_words(target)
    if family is BIT_PAIRS:
        return packed and counts_words(target)
    if family is INT8_INNER:
        # Additions run where products do not, and leave their operands.
        unit = target.vector
        apart = unit.alu_per_cycle > unit.fma_per_cycle and not target.writes_over
        return packed and apart and pair_products(target) is not None
    if family in (INT8_PAIRS, INT16_PAIRS):
        return pair_products(target) is not None
    if family is BF16_CONVERT:  # loads make f32 of bf16
        return target.has("avxneconvert") and target.vector.bits == 256
    if family.tiles:
        return target.has(family.name) and target.matrix is not None
    return True
