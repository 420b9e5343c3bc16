"""What one step of a register tile's inner loop is made of, as numbers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StepCost:
    """Instructions of a step, and the registers it needs beside the sums.

    multiplies, additions: for one vector of sums.
    left, right: arithmetic for a row of the left operand, a vector of the right one.
    shifts: of the right vector's, those that the multiplying units do (Intel's do).
    left_loads, right_loads: the same, loads.
    right_registers: of one vector of the right operand; others: all that is left.
    lines: of the right operand from the second-level cache, a cycle each, however
    little is used of them.
    masks: registers of a vector that reaches over the result's edge.
    together: so many vectors of the right operand are read at once, without masks: a
    tile has a multiple of them, and no more columns than the result.
    swaps: whether the roles of load and broadcast may be swapped (register_tile.py).
    narrow: so many vectors of sums are in a register while they are added up.
    latency: cycles until a sum can be added to again, 0 where that is as of multiply-
    adds, one behind the other.
    widened: bits of a row's numbers in the copy in front of the loops (widened.py).
    """

    multiplies: float = 1
    additions: float = 0
    left: float = 0
    right: float = 0
    shifts: float = 0
    left_loads: float = 1
    right_loads: float = 1
    right_registers: int = 1
    others: int = 1
    lines: float = 0
    widened: int = 0
    masks: int = 0
    together: int = 1
    swaps: bool = False
    narrow: int = 1
    latency: float = 0


FMA = StepCost(swaps=True)  # a broadcast, a load and a multiply-add
# What makes f32 of a vector of bf16 or f16: instructions, and registers beside.
CONVERSION = StepCost(right=2)
BY_INTEGERS = StepCost(right=9, others=3)  # vector/float_casts.py
