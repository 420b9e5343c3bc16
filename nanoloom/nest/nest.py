"""A kernel as loops over stages: what a schedule starts from, without any IR.

A `LoopNest` is a value: it prints, hashes and compares.  Everything that a schedule or
a model of its cost asks of a kernel, it answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property

from nanoloom.nest.extent import Extent
from nanoloom.nest.loop import Placement, plain
from nanoloom.nest.plan import Fusion
from nanoloom.nest.printer import print_nest
from nanoloom.nest.statement import Statement


class Role(Enum):
    """What a buffer is to a kernel."""

    INPUT = "input"  # an argument that is read
    CONSTANT = "constant"  # an argument that is known while compiling: a weight
    RESULT = "result"  # an argument that is written
    TEMPORARY = "temporary"  # made and read within the kernel
    SCALAR = "scalar"  # a number


@dataclass(frozen=True)
class Buffer:
    """A place for numbers.

    argument: which one of the kernel's it is, -1 for none.  panels: it lies in panels
    of so many columns, 0 as the model has it.  is_strided: its innermost elements lie
    apart, as a column of a matrix.  notes: what else a schedule says of it, in words:
    when it is fetched.
    """

    name: str
    shape: tuple[Extent, ...]
    element: str
    role: Role
    argument: int = -1
    panels: int = 0
    is_strided: bool = False
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        shape = "x".join(map(str, (*self.shape, self.element)))
        facts = [f"in panels of {self.panels} columns"] if self.panels else []
        facts += ["its innermost elements apart"] if self.is_strided else []
        return ", ".join(
            [f"{self.role.value} {self.name}: {shape}", *facts, *self.notes]
        )


@dataclass(frozen=True)
class LoopNest:
    """The stages of a kernel in order.

    results: the buffers that it returns.  placed: where stages are computed and with
    which loops, as far as a schedule says; the others stand one behind the other, with
    a loop for each axis.  plan: the fusions that made it one kernel.
    """

    buffers: tuple[Buffer, ...]
    stages: tuple[Statement, ...]
    results: tuple[str, ...]
    placed: tuple[Placement, ...] = ()
    plan: tuple[Fusion, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether its stages make all that they read, and the results: nothing else,
        such as a loop over tensors, has a part in it."""
        made = {x.buffer for stage in self.stages for x in stage.writes}
        read = {x.buffer for stage in self.stages for x in stage.reads}
        own = {b.name for b in self.buffers if b.role is Role.TEMPORARY}
        return {*self.results} | (read & own) <= made

    def buffer(self, name: str) -> Buffer:
        return next(b for b in self.buffers if b.name == name)

    def with_buffer(self, changed: Buffer) -> LoopNest:
        """The same with another buffer of this name."""
        pairs = (changed if b.name == changed.name else b for b in self.buffers)
        return replace(self, buffers=tuple(pairs))

    def stage(self, name: str) -> Statement:
        return self._named[name]

    # Each step of a schedule asks for the same stages and placements many times.
    @cached_property
    def _named(self) -> dict[str, Statement]:
        return {stage.name: stage for stage in self.stages}

    @cached_property
    def _placements(self) -> dict[str, Placement]:
        """Of stages that are placed, and of others that were asked for."""
        return {placement.stage: placement for placement in self.placed}

    def writer(self, buffer: str) -> Statement | None:
        """The stage that makes a buffer, None for arguments."""
        return next(
            (s for s in self.stages if buffer in [w.buffer for w in s.writes]), None
        )

    def readers(self, buffer: str) -> tuple[Statement, ...]:
        """The stages that read a buffer, once for each time."""
        return tuple(s for s in self.stages for r in s.reads if r.buffer == buffer)

    @property
    def last(self) -> Statement | None:
        """The stage that makes all that the kernel returns, None if there is none."""
        made = [self.writer(name) for name in self.results]
        return made[0] if made and all(s is made[0] for s in made) else None

    @property
    def products(self) -> tuple[Statement, ...]:
        """The contractions among the stages."""
        return tuple(s for s in self.stages if s.is_contraction)

    @property
    def pads(self) -> tuple[Statement, ...]:
        """The stages that put a border around a tensor."""
        return tuple(s for s in self.stages if s.inside is not None)

    def in_front(self, stage: str) -> tuple[Statement, ...]:
        """The stages that make what one reads: its numbers, not what it starts from."""
        return tuple(s for s in self.upstream(stage) if s.reads or s.inside is not None)

    def placement(self, stage: str) -> Placement:
        """Where a stage is computed, and its loops."""
        if stage not in self._placements:
            self._placements[stage] = plain(self.stage(stage))
        return self._placements[stage]

    def moved(self, placement: Placement) -> LoopNest:
        """The same with a stage placed so."""
        others = tuple(p for p in self.placed if p.stage != placement.stage)
        return replace(self, placed=(*others, placement))

    def of_stages(
        self, stages: Sequence[Statement], results: Sequence[str]
    ) -> LoopNest:
        """Some stages, as a kernel of their own; without fusions with others."""
        names = {stage.name for stage in stages}
        plan = tuple(x for x in self.plan if {x.producer, x.consumer} <= names)
        return replace(self, stages=tuple(stages), results=tuple(results), plan=plan)

    def producers(self, stage: str) -> tuple[Statement, ...]:
        """The stages that make what a stage reads or starts from, in order."""
        wanted = self.stage(stage)
        read = wanted.sources
        return tuple(
            s
            for s in self.stages
            if s is not wanted and any(w.buffer in read for w in s.writes)
        )

    def consumers(self, stage: str) -> tuple[Statement, ...]:
        """The stages that read what a stage makes or start from it, in order."""
        producer = self.stage(stage)
        made = [write.buffer for write in producer.writes]
        return tuple(
            s
            for s in self.stages
            if s is not producer and not s.sources.isdisjoint(made)
        )

    def upstream(self, stage: str) -> tuple[Statement, ...]:
        """All stages that one waits for, in order."""
        found: set[str] = set()
        waiting = [stage]
        while waiting:
            for each in self.producers(waiting.pop()):
                if each.name not in found:
                    found.add(each.name)
                    waiting.append(each.name)
        return tuple(s for s in self.stages if s.name in found)

    def __str__(self) -> str:
        """The loops as people draw them."""
        lines = [str(b) for b in self.buffers if b.role is not Role.SCALAR]
        return "\n".join([*lines, print_nest(self)])
