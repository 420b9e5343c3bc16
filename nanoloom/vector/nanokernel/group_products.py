"""Products of groups of steps by one instruction: dot products, products of pairs.

Reference loop, with as many numbers of k in a lane as the instruction adds (G):

    for k in 0..K step G: for r in rows: for c in columns:
        acc[r][c] += sum over g of left[r][k + g] * right[k + g][c]

A group of the left operand is in every lane of a register.  All else is the entry's in
the table of instructions, and how it is used: numbers that are narrower than it takes
are extended, the left ones in front of the loops; operands change places; products that
the instruction does not add up are added behind it.  Where it takes no such signs, the
left operand's sign bits are inverted, and the panel's last step, sums of its columns,
takes back what that adds (weights/panels.py).  Sums of integers wrap.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from nanoloom.ir.access import index
from nanoloom.ir.mlir import arith, ir, vector
from nanoloom.target.instructions.choose import DotUse
from nanoloom.target.instructions.instruction import BITS
from nanoloom.vector.nanokernel import guarded_sums, k_groups
from nanoloom.vector.nanokernel.instructions import (
    add_products,
    in_lanes,
    instruction,
    word_of,
)
from nanoloom.vector.nanokernel.narrow_accumulators import NarrowSums, lane_sums
from nanoloom.vector.nanokernel.operands.convert_lhs import convert_lhs, extended
from nanoloom.vector.nanokernel.operands.guarded_lhs import (
    Fill,
    GuardedLhs,
    GuardedRead,
)
from nanoloom.vector.nanokernel.operands.packed_panel import PackedPanel
from nanoloom.vector.nanokernel.tile.tile import Tile


def accumulate(tile: Tile, use: DotUse, signed: tuple[bool, bool]) -> list[ir.Value]:
    """Emit the loops; gives rows * vectors accumulators.

    signed: whether the left and the right operand's integers are.
    """
    group, element = use.dot.group, taken(tile, use)
    wide = ir.VectorType.get([tile.lanes * group], element)
    one = ir.VectorType.get([group], element)
    copy_rows(tile, use, signed)

    def right(panel: ir.Value) -> ir.Value:
        return extended(wide, panel, signed[1])

    def step_of(read: Callable[[k_groups.Row], ir.Value]) -> k_groups.Step:
        def left(row: k_groups.Row) -> ir.Value:
            word = word_of(extended(one, read(row), signed[0]))
            return in_lanes(word, wide, flipped=use.flipped)

        product = partial(add_products, use, make=instruction)
        return k_groups.Step(group, ((left, right),), product, use.dot.most)

    def family(read: GuardedRead | Fill, rows: list[ir.Value]) -> guarded_sums.Through:
        return k_groups.Sums(tile, step_of(read.group), rows).through

    start, lhs = corrected(tile, use), GuardedLhs.of(tile)
    if use.dot.most:
        return in_rounds(tile, step_of(k_groups.Row.together), wide, start)
    if lhs is None or not lhs.in_groups:
        return k_groups.accumulate(tile, step_of(k_groups.Row.together), start)
    adds = use.flipped or lhs.number != "0"
    return guarded_sums.accumulate(tile, lhs, family, start, adds=adds)


def copy_rows(tile: Tile, use: DotUse, signed: tuple[bool, bool]) -> None:
    """Let a tile read a copy of its rows, if it is told to and does not yet."""
    if tile.left_copy is None:
        convert_lhs(tile, taken(tile, use), signed=signed[0])


def in_rounds(
    tile: Tile, step: k_groups.Step, kind: ir.VectorType, start: list[ir.Value]
) -> list[ir.Value]:
    """Sums as narrow as the numbers, each of a group its own: added to those of the
    result behind each round.  kind: of a vector of them."""
    made = k_groups.Sums(tile, step, tile.row_indices)

    def rest(ivs: list[ir.Value], sums: list[ir.Value]) -> list[ir.Value]:
        dim = tile.shape.reduced[-1]
        left = tile.shape.extents[dim] % step.group
        return made.products(ivs, ivs[dim], left, sums)

    def added(sums: list[ir.Value], narrow: list[ir.Value]) -> list[ir.Value]:
        pairs = zip(sums, narrow, strict=True)
        return [arith.addi(sum_, lane_sums(sum_.type, x)) for sum_, x in pairs]

    return NarrowSums(
        tile, kind, len(start), step.group, step.most, made.whole, made.innermost,
        rest, added,
    ).accumulate(start)  # fmt: skip


def taken(tile: Tile, use: DotUse) -> ir.Type:
    """The type of numbers that the instruction multiplies."""
    given = ir.RankedTensorType(tile.right.type).element_type
    bits = BITS[use.dot.right]
    if given.width == bits:  # type: ignore[attr-defined] - all types of numbers have it
        return given
    return ir.IntegerType.get_signless(bits)


def corrected(tile: Tile, use: DotUse) -> list[ir.Value]:
    """The sums before the first step, less what inverted sign bits add to them."""
    start, group = k_groups.starts(tile), use.dot.group
    if not use.flipped:
        return start
    shape = tile.shape
    panel = PackedPanel.of(tile, group)
    ivs = tile.ivs(index(0), index(0))
    ivs[shape.reduced[-1]] = index(-(-shape.extents[shape.reduced[-1]] // group))
    kind = ir.VectorType(start[0].type)
    vectors = tile.plan.vectors
    less = [vector.bitcast(kind, panel.read(ivs, v)) for v in range(vectors)]
    return [arith.addi(s, less[i % vectors]) for i, s in enumerate(start)]
