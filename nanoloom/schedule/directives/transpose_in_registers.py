"""Operands that lie along another axis than a stage's vectors."""

from __future__ import annotations

from dataclasses import dataclass

from nanoloom.nest.loop import How
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.statement import Statement
from nanoloom.schedule.directives.directive import (
    MOST_LANES,
    Directive,
    refuse,
    require_no_nanokernel,
    require_power,
    stage_of,
)
from nanoloom.schedule.directives.loops import require_remainder

LEAST_BLOCK, MOST_BLOCK = 64, 2048  # bits


@dataclass(frozen=True)
class TransposeInRegisters(Directive):
    """for i: for jv: y[i, jv] = x[jv, i]
      ->  for i by lanes: for j by lanes: y[iv, jv] = transposed(x[jv, iv])

    What lies along another axis than the vectors of a stage is read along that one, a
    square of lanes x lanes numbers at a time, and transposed in registers by shuffles;
    else one number a lane.  block_bits: bits of a row that are put beside others as
    they come from memory, and transposed without leaving their place: where no square
    is left of a row some of it are.  The last square and the last piece overlap the
    ones before.  tail_lanes: lanes of the smallest squares, where an axis has no room
    for larger ones or nobody knows how much is left.
    """

    stage: str
    block_bits: int
    tail_lanes: int

    def apply(self, nest: LoopNest) -> LoopNest:
        stage = stage_of(self, nest, self.stage)
        require_power(self, "block_bits", self.block_bits, MOST_BLOCK)
        require_power(self, "tail_lanes", self.tail_lanes, MOST_LANES)
        if self.block_bits < LEAST_BLOCK:
            refuse(
                self,
                f"block_bits is {self.block_bits}: at least {LEAST_BLOCK} bits are one",
            )
        placement = nest.placement(self.stage)
        require_no_nanokernel(self, placement)
        vectors = [loop for loop in placement.loops if loop.how is How.VECTOR]
        if not vectors:
            refuse(self, f"{self.stage} has no vectors yet", "vectorize it first")
        require_remainder(self, placement)
        if stage.is_reduction:
            refuse(self, f"{self.stage} is a sum: nothing is transposed in it")
        if not lies_across(stage, vectors[-1].axis):
            reason = f"all that {self.stage} reads lies along {vectors[-1].axis}"
            refuse(self, f"{reason}: nothing is to be transposed")
        return nest


def lies_across(stage: Statement, axis: str) -> bool:
    """Whether a stage reads something whose numbers along an axis are no neighbours."""
    return any(axis in read.axes and not read.lies_along(axis) for read in stage.reads)
