"""Loops of a stage taken apart, put in order, and made vectors or straight lines."""

from __future__ import annotations

from dataclasses import dataclass, replace

from nanoloom.nest.extent import Lanes
from nanoloom.nest.loop import How, Loop, Placement, halves, lanes_of
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.statement import Statement
from nanoloom.schedule.directives.directive import (
    Directive,
    innermost,
    loop_of,
    refuse,
    require_lanes,
    require_new,
    require_no_nanokernel,
    require_number,
    require_power,
    require_serial,
    require_width,
    stage_of,
)
from nanoloom.schedule.inner_loops import outer_loops
from nanoloom.target.tail_forms import FORMS, MASKED_REMAINDER, MASKING, VECTOR_LENGTH

MOST_CHAINS, MOST_POINTS = 16, 64


def serial_loop(word: object, nest: LoopNest, stage: str, name: str) -> Loop:
    """A loop that a word works on."""
    stage_of(word, nest, stage)
    loop = loop_of(word, nest.placement(stage), name)
    require_serial(word, loop)
    return loop


def require_single(word: object, loop: Loop) -> None:
    if loop.step > 1:
        refuse(
            word, f"a step of {loop.name} is {loop.step} points: take its inner loop"
        )


def require_not_padded(word: object, loop: Loop) -> None:
    if loop.padded:
        refuse(word, f"{loop.name} is padded already", "pad its blocks")


def require_size(word: object, loop: Loop, what: str, size: int) -> None:
    require_number(word, what, size)
    if not isinstance(loop.trips, int):
        refuse(word, f"the extent of {loop.name} is no number: {loop.trips}")


def require_nothing_at(word: object, nest: LoopNest, stage: str, loop: str) -> None:
    for other in nest.stages:
        if nest.placement(other.name).at == (stage, loop):
            refuse(word, f"{other.name} is computed inside of {loop}")


def require_nothing_within(word: object, nest: LoopNest, stage: str, loop: str) -> None:
    """That nothing is computed where more points of a loop's axis would be needed."""
    names = nest.placement(stage).names
    for other in nest.stages:
        at = nest.placement(other.name).at
        if at and at[0] == stage and names.index(at[1]) >= names.index(loop):
            inside = f"{other.name} is computed inside of {at[1]}, for single points"
            refuse(word, f"{inside} of {loop}", "say this word before ComputeAt")


@dataclass(frozen=True)
class Split(Directive):
    """for i in 0..n: f(i)
      ->  for outer in 0..n/size: for inner in 0..size: f(outer*size + inner)

    Names for both.  Where size does not divide n, the last block is smaller.
    """

    stage: str
    loop: str
    outer: str
    inner: str
    size: int

    def apply(self, nest: LoopNest) -> LoopNest:
        loop = serial_loop(self, nest, self.stage, self.loop)
        require_size(self, loop, "size", self.size)
        require_single(self, loop)
        require_not_padded(self, loop)
        require_nothing_at(self, nest, self.stage, self.loop)
        placement = nest.placement(self.stage)
        others = replace(
            placement, loops=tuple(x for x in placement.loops if x != loop)
        )
        require_new(self, others, self.outer, self.inner)
        parts = halves(loop, self.size, self.outer, self.inner)
        return nest.moved(placement.replaced(self.loop, parts))


@dataclass(frozen=True)
class Reorder(Directive):
    """for i: for j: f(i, j)  ->  for j: for i: f(i, j)

    loops: those that change places, outermost first; others stay where they are.
    """

    stage: str
    loops: tuple[str, ...]

    def apply(self, nest: LoopNest) -> LoopNest:
        stage_of(self, nest, self.stage)
        placement = nest.placement(self.stage)
        moved = [loop_of(self, placement, name) for name in self.loops]
        if len(set(self.loops)) != len(self.loops):
            refuse(self, "a loop is named twice")
        for name in self.loops:
            require_nothing_at(self, nest, self.stage, name)
        if set(moved) & set(placement.loops[len(outer_loops(nest, placement)) :]):
            require_no_nanokernel(self, placement)
        rest = iter(moved)
        loops = tuple(next(rest) if x in moved else x for x in placement.loops)
        for axis in {loop.axis for loop in loops}:
            steps = [loop.step for loop in loops if loop.axis == axis]
            if steps != sorted(steps, reverse=True):
                refuse(self, f"a part of {axis} would be outside of the loop over it")
        return nest.moved(replace(placement, loops=loops))


@dataclass(frozen=True)
class Vectorize(Directive):
    """for i in 0..n: f(i)  ->  for i in 0..n/lanes: f(i*lanes .. i*lanes + lanes-1)

    The lanes are the innermost loop, called "iv".  form: what becomes of points that
    fill no vector (target/tail_forms.py), "masked remainder" by itself.  chains: of a
    loop that is summed over, so many vectors of sums side by side, combined at its end.
    A stage that has vectors already gets vectors of one axis more, outside of theirs:
    so many of them are one value, vector<5x64xf32>.
    """

    stage: str
    loop: str
    lanes: Lanes
    chains: int = 1
    form: str = MASKED_REMAINDER

    def apply(self, nest: LoopNest) -> LoopNest:
        loop = serial_loop(self, nest, self.stage, self.loop)
        require_no_nanokernel(self, nest.placement(self.stage))
        require_lanes(self, self.lanes)
        require_single(self, loop)
        require_nothing_within(self, nest, self.stage, self.loop)
        placement = nest.placement(self.stage)
        vectors = [x for x in placement.loops if x.how is How.VECTOR]
        if vectors:
            self.require_rows(loop, vectors)
        else:
            require_width(self, self.lanes)
            require_power(self, "chains", self.chains, MOST_CHAINS)
            self.require_form(nest.stage(self.stage), loop)
        name = placement.fresh(f"{self.loop}v")
        steps, vector = lanes_of(loop, self.lanes, self.chains, name)
        vector = replace(vector, form=self.form)
        rest = placement.replaced(self.loop, [steps])
        loops = innermost(rest.loops, vector, (How.VECTOR,))
        return nest.moved(replace(rest, loops=loops))

    def require_form(self, stage: Statement, loop: Loop) -> None:
        """That the loop over vectors can have this form."""
        if self.form not in FORMS:
            refuse(self, f"form is {self.form!r}: {', '.join(FORMS)} are known")
        if self.form in MASKING and not masks(stage, loop.axis):
            reason = f"{self.stage} takes numbers one by one, not along {loop.axis}"
            refuse(self, f"{reason}: no mask says which of them count")
        if self.form == VECTOR_LENGTH:
            if not self.lanes.scalable:
                reason = f"vectors of {self.lanes} have one length, on every machine"
                refuse(self, reason, "Lanes(4, scalable=True) asks the machine")
            if self.chains > 1:
                refuse(self, f"a round asks for one length, not for {self.chains}")

    def require_rows(self, loop: Loop, vectors: list[Loop]) -> None:
        """That the vectors of a stage can be rows of larger ones."""
        require_number(self, "lanes", self.lanes.count)
        if any(x.is_reduction for x in (loop, *vectors)) or self.chains > 1:
            refuse(self, "vectors of several axes are of axes that are not summed over")
        if self.form != MASKED_REMAINDER:
            reason = f"the form of vectors is said of {vectors[-1].axis}, the innermost"
            refuse(self, reason)
        if self.lanes.scalable:
            refuse(self, f"only {vectors[-1].axis}, the innermost, can be scalable")
        if self.lanes.count > MOST_POINTS:
            refuse(self, f"lanes = {self.lanes}: at most {MOST_POINTS} rows are wanted")


@dataclass(frozen=True)
class Unroll(Directive):
    """for k in 0..3: f(k)  ->  f(0); f(1); f(2)

    count: for k in 0..n: f(k)  ->  for k in 0..n/count: f(k*count); ...; the steps that
    stand behind each other are the loop "ku".  0 for all of them.
    """

    stage: str
    loop: str
    count: int = 0

    def apply(self, nest: LoopNest) -> LoopNest:
        loop = serial_loop(self, nest, self.stage, self.loop)
        require_number(self, "count", self.count, least=0)
        require_size(self, loop, "count", self.count or 1)
        require_nothing_at(self, nest, self.stage, self.loop)
        placement = nest.placement(self.stage)
        if loop not in outer_loops(nest, placement):
            require_no_nanokernel(self, placement)
        if self.count in (0, loop.trips):
            whole = replace(loop, how=How.UNROLLED)
            return nest.moved(placement.replaced(self.loop, [whole]))
        inner = placement.fresh(f"{self.loop}u")
        steps, part = parts_of(loop, self.count, inner)
        return nest.moved(placement.replaced(self.loop, [steps, part]))


@dataclass(frozen=True)
class UnrollAndJam(Directive):
    """for i in 0..n: for k: f(i, k)  ->  for i in 0..n/count: for k: f(i*count, k);
    ...; f(i*count + count-1, k)

    The loops further in run once for `count` points of an axis (of vectors, if it has
    become such), the loop "iu", whose results are in registers together.
    """

    stage: str
    loop: str
    count: int

    def apply(self, nest: LoopNest) -> LoopNest:
        loop = serial_loop(self, nest, self.stage, self.loop)
        require_no_nanokernel(self, nest.placement(self.stage))
        require_size(self, loop, "count", self.count)
        if loop.is_reduction:
            refuse(self, f"{self.loop} is summed over: its points wait for each other")
        if self.count > MOST_POINTS:
            refuse(self, f"count is {self.count}: at most {MOST_POINTS} is wanted")
        require_nothing_within(self, nest, self.stage, self.loop)
        placement = nest.placement(self.stage)
        for x in placement.loops:
            if x.form == VECTOR_LENGTH and x.axis == loop.axis and self.count > 1:
                refuse(self, f"a round asks for one length, not for {self.count}")
        inner = placement.fresh(f"{self.loop}u")
        steps, part = parts_of(loop, self.count, inner)
        rest = placement.replaced(self.loop, [steps])
        loops = innermost(rest.loops, part, (How.VECTOR,))
        return nest.moved(replace(rest, loops=loops))


def masks(stage: Statement, axis: str) -> bool:
    """Whether a mask can say which of a stage's points along an axis count."""
    operands = (*stage.reads, *stage.writes)
    return stage.lanewise and all(x.follows_on(axis) for x in operands)


def require_remainder(word: object, placement: Placement) -> None:
    """That a stage's vectors are full ones, and what they leave."""
    for loop in placement.loops:
        if loop.form in MASKING:
            reason = f"vectors of {placement.stage} have the form {loop.form!r}"
            refuse(word, f"{reason}, in which every round may be a part")


def parts_of(loop: Loop, count: int, inner: str) -> tuple[Loop, Loop]:
    """A loop over blocks of its steps, and the steps of a block, written out."""
    assert isinstance(loop.trips, int)
    steps, part = halves(loop, min(count, loop.trips), loop.name, inner)
    return steps, replace(part, how=How.UNROLLED)


__all__ = ["Placement", "Reorder", "Split", "Unroll", "UnrollAndJam", "Vectorize"]
