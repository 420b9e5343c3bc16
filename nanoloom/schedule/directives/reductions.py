"""Sums in parts, and with a place of their own."""

from __future__ import annotations

from dataclasses import dataclass, replace

from nanoloom.nest.index import Access, Index
from nanoloom.nest.loop import plain
from nanoloom.nest.nest import Buffer, LoopNest, Role
from nanoloom.nest.statement import Axis, AxisKind, Semiring, Statement
from nanoloom.schedule.directives.directive import (
    Directive,
    loop_of,
    refuse,
    require_number,
    stage_of,
)

RESULT = "result"  # the stage that StoreApart makes
FIRST = "first"  # the part that Peel makes


@dataclass(frozen=True)
class Peel(Directive):
    """for k in 0..n: f(k)  ->  for k in 0..at: f(k); for k in at..n: f(k)

    The second part keeps the stage's name; the first one is STAGE.first.
    """

    stage: str
    axis: str
    at: int

    def apply(self, nest: LoopNest) -> LoopNest:
        stage, placement = stage_of(self, nest, self.stage), nest.placement(self.stage)
        loop = loop_of(self, placement, self.axis)
        require_number(self, "at", self.at)
        if placement != plain(stage):
            refuse(
                self, f"the loops of {self.stage} are scheduled already", "peel first"
            )
        if not isinstance(loop.trips, int) or self.at >= loop.trips:
            refuse(self, f"{self.axis} goes to {loop.trips}: nothing is left")
        if not loop.is_reduction:
            refuse(self, f"{self.axis} is not summed over")
        name = f"{self.stage}.{FIRST}"
        before = with_extent(stage, self.axis, self.at, 0)
        writes = tuple(replace(w, buffer=name) for w in stage.writes)
        before = replace(before, name=name, writes=writes)
        behind = with_extent(stage, self.axis, loop.trips - self.at, self.at)
        behind = replace(behind, starts=("",) * len(stage.writes), begins=(name,))
        whole = nest.buffer(stage.writes[0].buffer)
        made = Buffer(name, whole.shape, whole.element, Role.TEMPORARY)
        stages = [
            x for s in nest.stages for x in ((before, behind) if s == stage else (s,))
        ]
        return replace(nest, buffers=(*nest.buffers, made), stages=tuple(stages))


def with_extent(stage: Statement, axis: str, extent: int, begin: int) -> Statement:
    """A part of a stage: so many points of an axis from one on."""
    axes = tuple(replace(a, extent=extent) if a.name == axis else a for a in stage.axes)
    reads = tuple(
        replace(read, indices=tuple(
            index.moved(begin * factor) if (factor := index.factor(axis)) else index
            for index in read.indices
        ))
        for read in stage.reads
    )  # fmt: skip
    return replace(stage, axes=axes, reads=reads)


@dataclass(frozen=True)
class PrivateAccumulator(Directive):
    """result[i] += f(i)  ->  sums[i] += f(i); result[i] = sums[i]

    The sums lie in a buffer of their own until they are complete; what writes the
    result is a stage of its own, `result`.
    """

    stage: str

    def apply(self, nest: LoopNest) -> LoopNest:
        stage = stage_of(self, nest, self.stage)
        if RESULT in {s.name for s in nest.stages}:
            refuse(self, f"there is a stage {RESULT} already")
        (write,) = stage.writes if len(stage.writes) == 1 else (None,)
        if write is None or None in write.plain:
            refuse(self, f"{self.stage} has no single result to store apart")
        names = [name for name in write.plain if name is not None]
        axes = tuple(axis for name in names if (axis := stage.axis(name)))
        last = Statement(RESULT, axes, (write,), (replace(write, buffer=RESULT),))
        whole = nest.buffer(write.buffer)
        made = Buffer(RESULT, whole.shape, whole.element, Role.TEMPORARY)
        stages = [x for s in nest.stages for x in ((s, last) if s == stage else (s,))]
        results = tuple(RESULT if r == write.buffer else r for r in nest.results)
        buffers = (*nest.buffers, made)
        return replace(nest, buffers=buffers, stages=tuple(stages), results=results)


@dataclass(frozen=True)
class SplitReduction(Directive):
    """for i: for k in 0..n: s[i] += f(i, k)
      ->  for i: for ko in 0..parts: for k in 0..n/parts: t[i, ko] += f(i, ko*.. + k)
          for i: for ko in 0..parts: s[i] += t[i, ko]

    Partial results of their own, the stage STAGE_parts, that tasks can share; the
    stage keeps its name and combines them.  `parts` divides the extent.
    """

    stage: str
    axis: str
    parts: int

    def apply(self, nest: LoopNest) -> LoopNest:
        stage = stage_of(self, nest, self.stage)
        loop = loop_of(self, nest.placement(self.stage), self.axis)
        require_number(self, "parts", self.parts, least=2)
        reduced = [axis for axis in stage.axes if axis.is_reduction]
        if [axis.name for axis in reduced] != [self.axis]:
            refuse(self, f"{self.axis} is not all that {self.stage} sums over")
        if nest.placement(self.stage) != plain(stage):
            refuse(self, f"the loops of {self.stage} are scheduled already")
        if not isinstance(loop.trips, int) or loop.trips % self.parts:
            refuse(self, f"{self.parts} parts do not divide {loop.trips} points")
        if stage.semiring is None or stage.leading_parallel() != len(stage.axes) - 1:
            refuse(self, f"{self.stage} is no sum behind its parallel axes")
        begin, parts, end = in_parts(stage, reduced[0], loop.trips // self.parts, self)
        stages = [
            x
            for s in nest.stages
            for x in ((begin, parts, end) if s == stage else (s,))
        ]
        whole = nest.buffer(stage.writes[0].buffer)
        made = tuple(
            Buffer(s.name, (*whole.shape, self.parts), whole.element, Role.TEMPORARY)
            for s in (begin, parts)
        )
        return replace(nest, buffers=(*nest.buffers, *made), stages=tuple(stages))


def in_parts(
    stage: Statement, axis: Axis, extent: int, word: SplitReduction
) -> tuple[Statement, Statement, Statement]:
    """What partial results begin with, the partial results, and what combines them."""
    number = Axis(f"{axis.name}o", AxisKind.PARALLEL, word.parts)
    outer = (*(a for a in stage.axes if a != axis), number)
    (write,) = stage.writes
    place = Index(((number.name, 1),))

    def partial(name: str) -> Access:
        return replace(write, buffer=name, indices=(*write.indices, place))

    names = f"{stage.name}_begin", f"{stage.name}_parts"
    begin = Statement(names[0], outer, (), (partial(names[0]),), ("",), ("",))
    reads = tuple(
        with_number(read, axis.name, number.name, extent) for read in stage.reads
    )
    parts = replace(
        stage,
        name=names[1],
        axes=(*outer, replace(axis, extent=extent)),
        reads=reads,
        writes=(partial(names[1]),),
        begins=(names[0],),
    )
    semiring = replace(stage.semiring or Semiring(""), product="", widening=())
    end = replace(
        stage,
        axes=(*outer[:-1], replace(number, kind=AxisKind.REDUCTION)),
        reads=(partial(names[1]),),
        semiring=semiring,
    )
    return begin, parts, end


def with_number(read: Access, axis: str, number: str, extent: int) -> Access:
    """A place whose axis has become number * extent + axis."""

    def index(x: Index) -> Index:
        factor = x.factor(axis)
        more = ((number, factor * extent),) if factor else ()
        return replace(x, terms=(*more, *x.terms))

    return replace(read, indices=tuple(map(index, read.indices)))
