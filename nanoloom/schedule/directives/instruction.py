"""Which instruction multiplies and adds several steps of a stage's sum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from nanoloom.nest.loop import How, Placement
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.statement import Statement
from nanoloom.schedule.directives.directive import refuse
from nanoloom.schedule.directives.note import Note
from nanoloom.target.instructions.choose import INSTRUCTIONS

ADDED = {("arith.addi", "arith.muli", "i32"), ("arith.addf", "arith.mulf", "f32")}


@dataclass(frozen=True)
class Instruction(Note):
    """for k: sums[jv] += a[k] * w[k, jv]
      ->  for k by 4: sums[jv] = sdot(sums[jv], a[k..k + 4], w[k..k + 4, jv])

    name: the assembler's (docs/instructions.md).  Of a stage with vectors, whose steps
    lie together in its operands as the instruction takes them.  Without it each step is
    multiplied and added by itself.
    """

    operation: ClassVar[str] = "use_instruction"

    stage: str
    name: str

    def require(self, nest: LoopNest, placement: Placement) -> None:
        found = [x for x in INSTRUCTIONS if x.name == self.name]
        if not any(x.accumulates for x in found):
            refuse(self, f"{self.name!r} is no instruction that adds to sums")
        stage = nest.stage(self.stage)
        if not adds_products(stage):
            refuse(self, f"{self.stage} is no sum of products in i32 or f32")
        if not any(x.how is How.VECTOR for x in placement.loops):
            refuse(self, f"{self.stage} has no vectors yet", "vectorize it first")
        types = {read.element for read in stage.reads}
        if not any({x.left, x.right} & types or not x.left for x in found):
            reason = f"{self.name} does not multiply {' by '.join(sorted(types))}"
            refuse(self, reason)


def adds_products(stage: Statement) -> bool:
    """Whether a stage is sum + a * b, of two operands."""
    ring = stage.semiring
    if ring is None or not stage.is_contraction or len(stage.reads) != 2:
        return False
    return (ring.combine, ring.product, stage.writes[0].element) in ADDED
