"""Products of single numbers, in the sums' type, of operands that lie narrow.

Reference loop, with G numbers of k in a lane of the right operand:

    for k in 0..K step G: for g in 0..G: for r in rows: for c in columns:
        acc[r][c] += wide(left[r][k + g]) * wide(right[k + g][c])

How a number becomes a wide one is a value, `Widening`: by an extension, where a lane is
one number; by a shift or a mask, where a lane is two floats that f32's bits begin with;
by loads that convert, of which the table of instructions has one for each.  Of rows
that are not packed the numbers of a lane are columns (flat_columns.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from nanoloom.ir.linalg_query import maps
from nanoloom.ir.mlir import arith, ir, vector
from nanoloom.target.instructions.instruction import LANE, Instruction
from nanoloom.target.instructions.x86 import EVEN, ODD, ONE
from nanoloom.vector.nanokernel import flat_columns, k_groups
from nanoloom.vector.nanokernel.fma import numbers
from nanoloom.vector.nanokernel.instructions import instruction
from nanoloom.vector.nanokernel.operands.convert_lhs import convert_lhs, extended
from nanoloom.vector.nanokernel.operands.vector_load_lhs import Number
from nanoloom.vector.nanokernel.reduction_loops import vector_kind
from nanoloom.vector.nanokernel.tile.tile import Tile, place_of, read_vector
from nanoloom.vector.widths import filled

UPPER = 0xFFFF0000 - (1 << LANE)
# Of a type of vectors, narrow numbers, and whether these are signed.
Widen = Callable[[ir.VectorType, ir.Value, bool], ir.Value]


@dataclass(frozen=True)
class Widening:
    """How operands become vectors of the sums' type.

    right: a function for each number of a lane.  left: of one number, in a vector of
    its own, for all lanes; without it numbers are extended and broadcast.
    """

    right: tuple[Widen, ...]
    left: Widen | None = None


def accumulate(
    tile: Tile, widening: Widening, signed: tuple[bool, bool]
) -> list[ir.Value]:
    """Emit the loops; gives rows * vectors accumulators.

    signed: whether the left and the right operand's integers are.
    """
    wide, group = vector_kind(tile), len(widening.right)
    if widening.left is None:
        convert_lhs(tile, wide.element_type, signed=signed[0])

    def right(widen: Widen) -> k_groups.Prepare:
        return lambda numbers: widen(wide, numbers, signed[1])

    rights = [right(widen) for widen in widening.right]
    if group > 1 and not tile.plan.packed:
        return flat_columns.accumulate(tile, rights, factors(tile, wide, widening))

    def left(g: int) -> k_groups.PrepareRow:
        def number(row: k_groups.Row) -> ir.Value:
            if widening.left is None:
                one = extended(wide.element_type, row.number(g), signed[0])
                return vector.broadcast(wide, one)
            if g >= row.count:
                return filled(wide, 0)
            return widening.left(wide, row.alone(g), signed[0])

        return number

    parts = tuple((left(g), x) for g, x in enumerate(rights))
    return k_groups.accumulate(tile, k_groups.Step(group, parts, multiply_add))


def factors(tile: Tile, wide: ir.VectorType, widening: Widening) -> Number:
    """The left operand's numbers, one by one."""
    widen = widening.left
    if widen is None:
        return numbers(tile, wide)

    def factor(ivs: list[ir.Value], row: int) -> ir.Value:
        del row
        place = place_of(maps(tile.op)[tile.shape.left], ivs)
        return widen(wide, read_vector(tile.left, place, 1, None), True)

    return factor


def multiply_add(sums: ir.Value, left: ir.Value, right: ir.Value) -> ir.Value:
    if isinstance(ir.VectorType(sums.type).element_type, ir.FloatType):
        return vector.fma(left, right, sums)
    return arith.addi(sums, arith.muli(left, right))


# ---- ways to widen


def by_load(load: Instruction) -> Widen:
    """By an instruction that reads what lies there, and converts some of it."""
    return lambda wide, numbers, _: instruction(load.function, wide, [numbers])


def lower_half(wide: ir.VectorType, lanes: ir.Value, signed: bool) -> ir.Value:
    """The first of two numbers of a lane: the upper half of its bits is made of it."""
    del signed
    words = as_words(wide, lanes)
    half = vector.broadcast(words.type, word(LANE // 2))
    return vector.bitcast(wide, arith.shli(words, half))


def upper_half(wide: ir.VectorType, lanes: ir.Value, signed: bool) -> ir.Value:
    """The second one: the upper half of its bits."""
    del signed
    words = as_words(wide, lanes)
    mask = vector.broadcast(words.type, word(UPPER))
    return vector.bitcast(wide, arith.andi(words, mask))


def as_words(wide: ir.VectorType, lanes: ir.Value) -> ir.Value:
    kind = ir.VectorType.get(wide.shape, ir.IntegerType.get_signless(LANE))
    return vector.bitcast(kind, lanes)


def word(number: int) -> ir.Value:
    return arith.constant(ir.IntegerType.get_signless(LANE), number)


EXTENDED = Widening((extended,))
HALVES = Widening((lower_half, upper_half))
LOADED = Widening((by_load(EVEN), by_load(ODD)), by_load(ONE))
