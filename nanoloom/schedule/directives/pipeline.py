"""Loads a round ahead of what computes with them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from nanoloom.nest.loop import How
from nanoloom.nest.nest import LoopNest
from nanoloom.schedule.directives.directive import Directive, refuse
from nanoloom.schedule.directives.loops import (
    require_nothing_at,
    require_remainder,
    serial_loop,
)
from nanoloom.schedule.inner_loops import is_point, outer_loops


@dataclass(frozen=True)
class Pipeline(Directive):
    """for k in 0..n: sums = f(sums, x[k])
      ->  here = x[0]
          for k in 0..n-1: { next = x[k + 1]; sums = f(sums, here); here = next }
          sums = f(sums, here)

    What the next step of a stage's innermost loop reads is loaded while this one
    computes, into registers of its own; the last step loads nothing.  For the vector
    code of a stage, once it has its vectors and points side by side.  Worth it where a
    processor runs in order: others look ahead themselves, as far as registers allow.
    """

    stage: str
    loop: str

    def apply(self, nest: LoopNest) -> LoopNest:
        loop = serial_loop(self, nest, self.stage, self.loop)
        stage, placement = nest.stage(self.stage), nest.placement(self.stage)
        if not any(x.how is How.VECTOR for x in placement.loops):
            refuse(self, f"{self.stage} has no vectors yet", "vectorize it first")
        require_remainder(self, placement)
        if loop in outer_loops(nest, placement):
            refuse(self, f"{self.loop} is around the vector code of {self.stage}")
        require_nothing_at(self, nest, self.stage, self.loop)
        for inner in placement.loops[placement.names.index(self.loop) + 1 :]:
            single = inner.is_reduction and inner.trips == 1
            if not is_point(inner) and not single and inner.how is not How.UNROLLED:
                refuse(self, f"the loop {inner.name} runs inside of {self.loop}")
        if loop.trips == 1:
            refuse(self, f"{self.loop} has one step: nothing is ahead of it")
        if not stage.lanewise:
            refuse(self, f"{self.stage} reads where its numbers say")
        return nest.moved(placement.replaced(self.loop, [replace(loop, ahead=True)]))
