"""Rounds of a loop over vectors, each under masks of the lanes that count.

    for at in 0..n by count vectors: step(at, masks)          (under_masks)
    while at < n: length = vsetvli(n - at); step(at, mask)    (by_lengths)

The mask of a length is one of LLVM's active lanes, by which llvm/vector_length.py knows
the loads and stores that take the length itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from nanoloom.ir.access import add, as_index, constant_of, index
from nanoloom.ir.mlir import arith, ir, llvm, vector
from nanoloom.nest.extent import Lanes
from nanoloom.vector.emit_loops import emit_loop, emit_while
from nanoloom.vector.widths import elements, vector_type

Masks: TypeAlias = list[ir.Value]  # of vectors side by side
# Where a round begins, its masks, what is carried: what is carried on.
Step: TypeAlias = Callable[[ir.Value, Masks, list[ir.Value]], list[ir.Value]]
MOST_COUNTED = (1 << 31) - 1
MANY_LANES = 32  # of bytes in groups of registers, 32768 at most: RISC-V alone has such
LENGTH = "llvm.experimental.get.vector.length"


def first_lanes(lanes: Lanes, count: ir.Value) -> ir.Value:
    """The mask of so many lanes."""
    return vector.create_mask(mask_type(lanes), [count])


def rest_lanes(lanes: Lanes, count: ir.Value) -> ir.Value:
    """The mask of fewer lanes than a vector has: of vectors of any width by counting
    in as few bits as hold that, in few registers (whilelo; vid and a comparison)."""
    if not lanes.scalable:
        return first_lanes(lanes, count)
    kind = ir.IntegerType.get_signless(16 if lanes.count >= MANY_LANES else 32)
    bounds = [arith.constant(kind, 0), arith.index_cast(kind, count)]
    return llvm.intr_get_active_lane_mask(mask_type(lanes), *bounds)


def mask_type(lanes: Lanes) -> ir.VectorType:
    return vector_type(lanes, ir.IntegerType.get_signless(1))


def under_masks(
    lanes: Lanes,
    end: ir.Value,
    count: int,
    values: Sequence[ir.Value],
    step: Step,
    *,
    by_places: bool,
) -> list[ir.Value]:
    """Rounds of `count` vectors up to an end; gives what is carried.

    by_places: an instruction compares the lanes' places with the end (whilelo).
    """

    def inside(at: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
        begins = [add(at, as_index(elements(lanes, n))) for n in range(count)]
        if by_places:
            masks = [active(lanes, begin, end) for begin in begins]
        elif lanes.scalable and count == 1 and is_partial(end):
            masks = [counted(lanes, arith.subi(end, at))]
        else:
            masks = [first_lanes(lanes, arith.subi(end, begin)) for begin in begins]
        return step(at, masks, carried)

    return emit_loop((0, end), elements(lanes, count), values, inside)


def active(lanes: Lanes, begin: ir.Value, end: ir.Value) -> ir.Value:
    """The mask of the lanes whose places, counted from one, are in front of an end."""
    i64 = ir.IntegerType.get_signless(64)
    places = [arith.index_cast(i64, place) for place in (begin, end)]
    return llvm.intr_get_active_lane_mask(mask_type(lanes), *places)


def is_partial(end: ir.Value) -> bool:
    """Whether 32 bits count as far as an end."""
    known = constant_of(end)
    return known is not None and known <= MOST_COUNTED


def counted(lanes: Lanes, rest: ir.Value) -> ir.Value:
    """The mask of so many lanes, which is more than none and fits 32 bits.

    MLIR's own asks first whether it does, in three instructions a round.
    """
    i32 = ir.IntegerType.get_signless(32)
    bounds = [arith.constant(i32, 0), arith.index_cast(i32, rest)]
    return llvm.intr_get_active_lane_mask(mask_type(lanes), *bounds)


def by_lengths(
    lanes: Lanes, end: ir.Value, values: Sequence[ir.Value], step: Step
) -> list[ir.Value]:
    """Rounds of as many numbers as the machine takes at once; what is carried."""

    def more(carried: list[ir.Value]) -> ir.Value:
        return arith.cmpi(arith.CmpIPredicate.slt, carried[0], end)

    def inside(carried: list[ir.Value]) -> list[ir.Value]:
        at, *values = carried
        length = length_of(lanes, arith.subi(end, at))
        zero = arith.constant(length.type, 0)
        mask = llvm.intr_get_active_lane_mask(mask_type(lanes), zero, length)
        made = step(at, [mask], values)
        return [arith.addi(at, arith.index_cast(ir.IndexType.get(), length)), *made]

    return emit_while([index(0), *values], more, inside)[1:]


def length_of(lanes: Lanes, rest: ir.Value) -> ir.Value:
    """How many of the numbers that are left the machine takes, as i32."""
    i1, i32, i64 = (ir.IntegerType.get_signless(bits) for bits in (1, 32, 64))
    given = [
        arith.index_cast(i64, rest),
        arith.constant(i32, lanes.count),
        arith.constant(i1, 1),
    ]
    return llvm.call_intrinsic(i32, LENGTH, given, [], [])
