"""Operands that a stage reads from a copy."""

from __future__ import annotations

from dataclasses import dataclass, replace

from nanoloom.nest.nest import LoopNest
from nanoloom.schedule.words.word import Word, refuse, require_number, stage_of


@dataclass(frozen=True)
class CopyOperand(Word):
    """for j: for i: for k: f(w[k, j])
      ->  for j: { part[k] = w[k, j];  for i: for k: f(part[k]) }

    A stage's part of an operand lies in rows side by side while vector code reads it:
    it is copied inside of the loops over blocks, in front of all others.  operand:
    which one of those that the stage reads.
    """

    stage: str
    operand: int

    def apply(self, nest: LoopNest) -> LoopNest:
        stage = stage_of(self, nest, self.stage)
        require_number(self, "operand", self.operand, least=0)
        if self.operand >= len(stage.reads):
            count = len(stage.reads)
            refuse(self, f"{self.stage} reads {count} operands, counted from 0")
        if not stage.reads[self.operand].indices:
            refuse(self, "the operand is a number: there is nothing to copy")
        placement = nest.placement(self.stage)
        copied = tuple(sorted({*placement.copied, self.operand}))
        return nest.moved(replace(placement, copied=copied))
