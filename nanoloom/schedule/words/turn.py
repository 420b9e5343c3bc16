"""Operands that lie along another axis than a stage's vectors."""

from __future__ import annotations

from dataclasses import dataclass

from nanoloom.nest.loop import How
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.stage import Stage
from nanoloom.schedule.words.loops import require_remainder
from nanoloom.schedule.words.word import (
    MOST_LANES,
    Word,
    refuse,
    require_no_nanokernel,
    require_power,
    stage_of,
)

LEAST_PIECE, MOST_PIECE = 64, 2048  # bits


@dataclass(frozen=True)
class Turn(Word):
    """for i: for jv: y[i, jv] = x[jv, i]
      ->  for i by lanes: for j by lanes: y[iv, jv] = turned(x[jv, iv])

    What lies along another axis than the vectors of a stage is read along that one, a
    square of lanes x lanes numbers at a time, and turned in registers by shuffles; else
    one number a lane.  piece: bits of a row that are put beside others as they come
    from memory, and turned without leaving their place: where no square is left of a
    row some of it are.  The last square and the last piece overlap the ones before.
    rest: lanes of the smallest squares, where an axis has no room for larger ones or
    nobody knows how much is left.
    """

    stage: str
    piece: int
    rest: int

    def apply(self, nest: LoopNest) -> LoopNest:
        stage = stage_of(self, nest, self.stage)
        require_power(self, "piece", self.piece, MOST_PIECE)
        require_power(self, "rest", self.rest, MOST_LANES)
        if self.piece < LEAST_PIECE:
            refuse(self, f"piece is {self.piece}: at least {LEAST_PIECE} bits are one")
        placement = nest.placement(self.stage)
        require_no_nanokernel(self, placement)
        vectors = [loop for loop in placement.loops if loop.how is How.VECTOR]
        if not vectors:
            refuse(self, f"{self.stage} has no vectors yet", "vectorize it first")
        require_remainder(self, placement)
        if stage.is_reduction:
            refuse(self, f"{self.stage} is a sum: nothing is turned in it")
        if not lies_across(stage, vectors[-1].axis):
            reason = f"all that {self.stage} reads lies along {vectors[-1].axis}"
            refuse(self, f"{reason}: nothing is to be turned")
        return nest


def lies_across(stage: Stage, axis: str) -> bool:
    """Whether a stage reads something whose numbers along an axis are no neighbours."""
    return any(axis in read.axes and not read.lies_along(axis) for read in stage.reads)
