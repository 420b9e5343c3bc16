"""The order of a stage's points by what stays in a register, and what else is kept."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from nanoloom.nest.index import Access
from nanoloom.nest.loop import How, Loop, Placement
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.statement import Statement
from nanoloom.schedule.directives.directive import (
    Directive,
    loop_of,
    refuse,
    require_no_nanokernel,
    require_number,
    require_serial,
    require_tuple,
    stage_of,
)
from nanoloom.schedule.directives.loops import require_remainder
from nanoloom.schedule.inner_loops import is_point

MOST_BODIES = 1024  # points that stand behind each other


@dataclass(frozen=True)
class Stationary(Directive):
    """for x: for r: y[x] += a[x + r] * w[r]
      ->  y stays:  for x: { s = y[x];  for r: s += a[x + r] * w[r];  y[x] = s }
          w stays:  for r: { v = w[r];  for x: y[x] += a[x + r] * v }
          a stays:  for i: { u = a[i];  for r: y[i - r] += u * w[r] }

    All that a number takes part in is done while it is in a register.  anchor: whose
    numbers these are, an operand counted from 0, or the result, behind the last one.
    points, sums: the loops that are one block of code, innermost of the stage: its
    points, which may be many, and sums, written out.  resident: of other operands, how
    many vectors stay in registers from one use to the next, as ((operand, count), ...):
    the points' loops run on while a window moves over them.  unroll: so many steps of
    the innermost of `points` stand behind each other, so that no register is moved.
    """

    stage: str
    anchor: int
    points: tuple[str, ...]
    sums: tuple[str, ...]
    resident: tuple[tuple[int, int], ...] = ()
    unroll: int = 1

    def apply(self, nest: LoopNest) -> LoopNest:
        stage, placement = stage_of(self, nest, self.stage), nest.placement(self.stage)
        require_no_nanokernel(self, placement)
        points = self.loops(placement, self.points, "points", reduced=False)
        sums = self.loops(placement, self.sums, "sums", reduced=True)
        self.require_numbers(stage)
        self.require_innermost(nest, placement)
        self.require_places(stage, points, sums)
        written = [replace(loop, how=How.UNROLLED) for loop in sums]
        still = not self.operands(stage)[self.anchor].axes & {x.axis for x in points}
        block = (*written, *points) if still else (*points, *written)
        bodies = prod(x.trips for x in sums if isinstance(x.trips, int)) * self.unroll
        if bodies > MOST_BODIES:
            refuse(self, f"{bodies} points behind each other, {MOST_BODIES} at most")
        inside = {*self.points, *self.sums}
        around = [x for x in placement.loops if x.name not in inside]
        vectors = [x for x in around if x.how is How.VECTOR]
        outer = [x for x in around if x not in vectors]
        by = self.told(stage)
        made = replace(placement, loops=(*outer, *block, *vectors), by=by)
        return nest.moved(replace(made, block=(*self.points, *self.sums)))

    def loops(
        self, placement: Placement, names: tuple[str, ...], what: str, reduced: bool
    ) -> list[Loop]:
        """The loops of one kind, which have single steps and no words of their own."""
        require_tuple(self, what, names)
        found = [loop_of(self, placement, name) for name in names]
        for loop in found:
            require_serial(self, loop)
            if loop.is_reduction is not reduced:
                kind = "is summed over" if loop.is_reduction else "is no sum"
                refuse(self, f"{loop.name} is one of {what}, and {kind}")
            if loop.step > 1 or loop.padded or loop.ahead:
                refuse(self, f"{loop.name} has blocks, vectors or words of its own")
            if reduced and not isinstance(loop.trips, int):
                refuse(self, f"the extent of {loop.name} is no number: {loop.trips}")
        return found

    def require_numbers(self, stage: Statement) -> None:
        count = len(stage.reads)
        if not self.points:
            refuse(self, "points is (): a loop to go along is wanted")
        if not stage.is_contraction or len(stage.writes) != 1:
            refuse(self, f"{self.stage} is no sum of products")
        require_number(self, "unroll", self.unroll)
        require_number(self, "anchor", self.anchor, least=0)
        require_tuple(self, "resident", self.resident)
        numbers = [number for number, _ in self.resident]
        for number in (self.anchor, *numbers):
            if number > count:
                refuse(self, f"operands count from 0 to {count}, the result")
        if self.anchor in numbers or len(set(numbers)) < len(numbers):
            refuse(self, "kept names an operand twice, or the anchor")
        for _, vectors in self.resident:
            require_number(self, "a number of vectors", vectors)

    def require_innermost(self, nest: LoopNest, placement: Placement) -> None:
        """That nothing is computed, and no loop but vectors runs, inside of these."""
        inside = {*self.points, *self.sums}
        first = min(placement.names.index(name) for name in inside)
        vectors = [x for x in placement.loops if x.how is How.VECTOR]
        if len(vectors) != 1 or vectors[0].chains > 1:
            refuse(self, f"{self.stage} has no single vectors yet", "Vectorize first")
        require_remainder(self, placement)
        for loop in placement.loops[first:]:
            if loop.name not in inside and loop.how is not How.VECTOR:
                hint = "Reorder puts it outside"
                refuse(self, f"the loop {loop.name} runs inside of them", hint)
        for other in nest.stages:
            at = nest.placement(other.name).at
            if at and at[0] == self.stage and at[1] in placement.names[first:]:
                refuse(self, f"{other.name} is computed inside of {at[1]}")
        if any(is_point(x) and x not in vectors for x in placement.loops):
            refuse(self, f"{self.stage} has points side by side already")

    def require_places(
        self, stage: Statement, points: list[Loop], sums: list[Loop]
    ) -> None:
        """That all places are sums of these axes, and an anchor's go forward."""
        anchored = self.operands(stage)[self.anchor]
        along = {loop.axis for loop in points}
        within = {loop.axis for loop in sums}
        for x in self.operands(stage):
            for index in x.indices:
                if any(index.factor(axis) is None for axis in along | within):
                    refuse(self, f"{index} in {x.buffer} is no sum of axes")
        if anchored.axes & within:  # else each point has one, or all points share it
            for index in anchored.indices:
                moving = [a for a in along if index.factor(a)]
                back = any((index.factor(a) or 0) < 0 for a in along | within)
                if moving and (len(moving) > 1 or back):
                    reason = f"{anchored.buffer} is not read forward along one axis"
                    refuse(self, f"{reason}: {index}", "let another operand stay")

    def operands(self, stage: Statement) -> tuple[Access, ...]:
        return *stage.reads, *stage.writes

    def told(self, stage: Statement) -> str:
        """For the nest in print."""
        names = [x.buffer for x in self.operands(stage)]
        kept = [f"{count} of {names[number]}" for number, count in self.resident]
        registers = f", {' and '.join(kept)} in registers" if kept else ""
        return f"{names[self.anchor]} stationary{registers}"
