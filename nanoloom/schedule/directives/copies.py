"""Operands that a stage reads from a copy, and where it is made."""

from __future__ import annotations

from dataclasses import dataclass, replace

from nanoloom.nest.extent import ONE, Lanes
from nanoloom.nest.loop import How, Loop
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.statement import Statement
from nanoloom.schedule.directives.compute_at import stands_inside
from nanoloom.schedule.directives.directive import (
    Directive,
    refuse,
    require_no_nanokernel,
    require_number,
    require_width,
    stage_of,
)
from nanoloom.schedule.inner_loops import outer_loops


@dataclass(frozen=True)
class CopyOperand(Directive):
    """for j: for i: for k: f(w[k, j])
      ->  for j: { part[k] = w[k, j];  for i: for k: f(part[k]) }

    A stage's part of an operand lies in rows side by side while vector code reads it:
    it is copied inside of the loops over blocks, in front of all others.  operand:
    which one of those that the stage reads.  lanes: it is copied in such vectors, along
    its rows, one number after the other for 1.  wide: the copy is of the type that the
    stage widens the numbers to, once for all that read them.
    """

    stage: str
    operand: int
    lanes: Lanes = ONE
    wide: bool = False

    def apply(self, nest: LoopNest) -> LoopNest:
        stage = stage_of(self, nest, self.stage)
        require_number(self, "operand", self.operand, least=0)
        require_width(self, self.lanes)
        if self.operand >= len(stage.reads):
            count = len(stage.reads)
            refuse(self, f"{self.stage} reads {count} operands, counted from 0")
        if not stage.reads[self.operand].indices:
            refuse(self, "the operand is a number: there is nothing to copy")
        require_not_in_panels(self, nest, stage.reads[self.operand].buffer)
        placement = nest.placement(self.stage)
        require_no_nanokernel(self, placement)
        placed = placement.copying({self.operand: self.lanes})
        if self.wide:
            if not widens(stage):
                refuse(self, f"{self.stage} multiplies its operands as they are")
            widened = sorted({*placed.widened, self.operand})
            placed = replace(placed, widened=tuple(widened))
        return nest.moved(placed)


def widens(stage: Statement) -> bool:
    """Whether a product is one of wider numbers than it reads."""
    return stage.semiring is not None and any(stage.semiring.widening)


@dataclass(frozen=True)
class Hoist(Directive):
    """for io: { part[k] = w[k, j];  for i: for k: f(part[k]) }
      ->  part[k] = w[k, j];  for io: for i: for k: f(part[k])

    The copy of an operand (CopyOperand) is made once, in front of a loop around the
    stage: one of its own, or of a stage that it is computed inside of.  No loop from
    that one inwards may change which part it is.
    """

    stage: str
    operand: int
    loop: str

    def apply(self, nest: LoopNest) -> LoopNest:
        stage = stage_of(self, nest, self.stage)
        placement = nest.placement(self.stage)
        require_no_nanokernel(self, placement)
        if 0 <= self.operand < len(stage.reads):
            require_not_in_panels(self, nest, stage.reads[self.operand].buffer)
        if self.operand not in dict(placement.copied):
            reason = f"{self.stage} reads no copy of its operand {self.operand}"
            refuse(self, reason, "CopyOperand makes one")
        around = loops_around(nest, self.stage)
        names = [loop.name for _, loop in around]
        if self.loop not in names:
            if placement.loop(self.loop):
                refuse(self, f"the copy is in front of the loop {self.loop} already")
            known = ", ".join(names) or "none"
            refuse(
                self, f"no loop {self.loop} is around {self.stage}; there are {known}"
            )
        place = len(names) - 1 - names[::-1].index(self.loop)
        for owner, loop in around[place:]:
            self.require_same(nest, owner, loop)
        owner, _ = around[place]
        writer = nest.writer(stage.reads[self.operand].buffer)
        if writer and stands_inside(nest, writer.name, owner, self.loop):
            refuse(self, f"{writer.name} makes the operand inside of {self.loop}")
        others = [x for x in placement.hoisted if x[0] != self.operand]
        hoisted = (*others, (self.operand, owner, self.loop))
        return nest.moved(replace(placement, hoisted=hoisted))

    def require_same(self, nest: LoopNest, owner: str, loop: Loop) -> None:
        """That the part is the same in every step of a loop."""
        if loop.how is How.PARALLEL:
            refuse(self, f"the steps of {loop.name} are tasks: each makes its own copy")
        if loop.how is not How.SERIAL or loop.trips == 1:
            refuse(self, f"{loop.name} is {loop.how.value} in 0..{loop.trips}: no loop")
        read = nest.stage(self.stage).reads[self.operand]
        for axis in sorted(read.axes):
            if loop.axis in followed(nest, self.stage, axis, owner):
                part = f"the part of {read.buffer} changes with {loop.name}"
                refuse(self, f"{part}: {axis} is one of its axes")


def require_not_in_panels(word: object, nest: LoopNest, buffer: str) -> None:
    """That what is copied is no packed weight: of panels only nanokernels know."""
    if any(each.panels for each in nest.buffers if each.name == buffer):
        reason = f"{buffer} comes in panels, made while compiling: it has no copies"
        refuse(word, reason, "Packing says how it lies")


def loops_around(nest: LoopNest, stage: str) -> list[tuple[str, Loop]]:
    """The loops around a stage's vector code with what has them, outermost first."""
    placement = nest.placement(stage)
    found = [(stage, loop) for loop in outer_loops(nest, placement)]
    while placement.at is not None:
        owner, last = placement.at
        placement = nest.placement(owner)
        count = placement.names.index(last) + 1
        found = [(owner, loop) for loop in placement.loops[:count]] + found
    return found


def followed(nest: LoopNest, stage: str, axis: str, owner: str) -> set[str]:
    """The axes of a stage, or of what reads it, that move an axis's points."""
    if stage == owner:
        return {axis}
    found: set[str] = set()
    for write in nest.stage(stage).writes:
        if axis not in write.plain:
            continue
        place = write.plain.index(axis)
        for reader in nest.stages:
            for read in reader.taken:
                if read.buffer == write.buffer and reader.name != stage:
                    for name in read.indices[place].axes:
                        found |= followed(nest, reader.name, name, owner)
    return found
