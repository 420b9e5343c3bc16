"""Directives for all of a kernel, whose stages do not show in them."""

from __future__ import annotations

from dataclasses import dataclass

from nanoloom.nest.nest import LoopNest
from nanoloom.schedule.directives.directive import Directive, refuse, require_number

MOST_STACK = 32 * 1024  # bytes: threads have stacks of 64 KiB
STACK_BYTES = MOST_STACK // 2  # of a task's temporaries, where nothing else is said
BYTE, WIDEST = 8, 2048  # bits


@dataclass(frozen=True)
class Stack(Directive):
    """t = scratch[256 x f32]  ->  t = stack[256 x f32]

    Temporaries of a task are on the stack, the smallest first, as long as they take no
    more than so many `bytes` together; the others are in the thread's scratch memory,
    where all are without it.
    """

    bytes: int

    def apply(self, nest: LoopNest) -> LoopNest:
        require_number(self, "bytes", self.bytes)
        if self.bytes > MOST_STACK:
            refuse(self, f"bytes is {self.bytes}: at most {MOST_STACK} are on a stack")
        return nest


@dataclass(frozen=True)
class VectorizeRest(Directive):
    """for i: for j: y[i, j] = f(x[i, j])  ->  for i: for jv: y[i, jv] = f(x[i, jv])

    Of what is no stage: parts that are put in place, the bodies of a model's own loops.
    Along the innermost axis of a result, or else of an operand, in registers of `bits`,
    or scalable ones of `bits` times vscale.
    """

    bits: int
    scalable: bool = True

    def apply(self, nest: LoopNest) -> LoopNest:
        require_number(self, "bits", self.bits, least=BYTE)
        if self.bits > WIDEST or self.bits & (self.bits - 1):
            refuse(
                self, f"bits is {self.bits}: a power of two up to {WIDEST} is wanted"
            )
        return nest
