"""Axes that are computed over a multiple of points."""

from __future__ import annotations

from dataclasses import dataclass, replace

from nanoloom.nest.extent import ONE, Lanes
from nanoloom.nest.loop import How, Loop, Placement
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.padding import padding
from nanoloom.nest.statement import Statement
from nanoloom.schedule.directives.directive import (
    Directive,
    refuse,
    require_number,
    require_width,
    stage_of,
)
from nanoloom.schedule.inner_loops import outer_loops

MOST = 4096  # points of a multiple


@dataclass(frozen=True)
class Pad(Directive):
    """for j in 0..70: y[j] += w[k, j]
      ->  part[k, 0..72] = w[k, 0..70], 0, 0
          for j in 0..72: t[j] += part[k, j]
          y[0..70] = t[0..70]

    An axis of a stage's vector code is computed over a multiple of `to`, so that
    vectors and tiles need no mask and the last block is like all others.  What the
    stage reads along it is copied (CopyOperand) into rows that are filled up, with what
    changes no result; of the results, only what there is comes back.  lanes: results
    are copied in such vectors, and operands that no CopyOperand is said of.
    """

    stage: str
    axis: str
    to: int
    lanes: Lanes = ONE

    def apply(self, nest: LoopNest) -> LoopNest:
        stage, placement = stage_of(self, nest, self.stage), nest.placement(self.stage)
        require_number(self, "to", self.to, least=2)
        require_width(self, self.lanes)
        if self.to > MOST:
            refuse(self, f"to is {self.to}: at most {MOST} is wanted")
        if stage.axis(self.axis) is None:
            known = ", ".join(stage.names)
            refuse(self, f"{self.stage} has no axis {self.axis}; it has {known}")
        loop = self.loop_of(nest, placement)
        self.require_multiple(stage, loop)
        self.require_padding(stage)
        said = dict(placement.copied)
        copied = {
            number: said.get(number, self.lanes)
            for number, read in enumerate(stage.reads)
            if self.axis in read.axes
        }
        assert isinstance(loop.trips, int)
        whole = -(-loop.trips // self.to) * self.to
        placement = placement.replaced(
            loop.name, [replace(loop, trips=whole, padded=self.to)]
        )
        return nest.moved(placement.copying(copied))

    def loop_of(self, nest: LoopNest, placement: Placement) -> Loop:
        """The loop over the axis's points in vector code."""
        if placement.by:
            refuse(self, f"{self.stage} is a nanokernel, which has its own edges")
        outer = outer_loops(nest, placement)
        found = [
            loop
            for loop in placement.loops
            if loop.axis == self.axis and loop not in outer
        ]
        if len(found) != 1 or found[0].how is not How.SERIAL:
            refuse(self, f"the loops over {self.axis} are scheduled already: pad first")
        if found[0].padded:
            refuse(self, f"{self.axis} is padded already")
        return found[0]

    def require_multiple(self, stage: Statement, loop: Loop) -> None:
        """That there is anything to pad."""
        extent = stage.extents[stage.place(self.axis)]
        if not isinstance(extent, int) or not isinstance(loop.trips, int):
            refuse(self, f"the extent of {self.axis} is no number: {extent}")
        if extent % loop.trips == 0 and loop.trips % self.to == 0:
            refuse(self, f"{loop.trips} points are a multiple of {self.to} already")

    def require_padding(self, stage: Statement) -> None:
        """That points behind the end can be computed and change nothing."""
        if not stage.lanewise:
            refuse(self, f"{self.stage} reads where its numbers say")
        for access in (*stage.reads, *stage.writes):
            for index in access.indices:
                factor = index.factor(self.axis)
                if self.axis in index.axes and (factor is None or factor < 1):
                    refuse(self, f"{access} is read at places that no row has")
        reduced = stage.axes[stage.place(self.axis)].is_reduction
        placed = all(self.axis in write.plain for write in stage.writes)
        if not reduced and not placed:
            refuse(self, f"{self.axis} is no axis of the results")
        if reduced and any(self.axis not in read.plain for read in stage.reads):
            refuse(self, f"{self.axis} is read together with other axes")
        if padding(stage, self.axis) is None:
            refuse(self, f"no number changes nothing in {self.stage} along {self.axis}")
