"""What points that are computed at once share of their sums."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from nanoloom.nest.extent import Lanes
from nanoloom.nest.loop import How, Loop, Placement
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.reduction import WIDENING
from nanoloom.nest.statement import Statement
from nanoloom.schedule.directives.directive import refuse, require_power
from nanoloom.schedule.directives.note import Note
from nanoloom.schedule.inner_loops import (
    at_tile,
    is_point,
    is_read_by_number,
    order,
    outer_loops,
)

SINGLE, FEWEST, MOST = 1, 4, 16  # vectors that are reduced together
PRODUCTS = {"arith.mulf", "arith.addf"}


@dataclass(frozen=True)
class ReduceJointly(Note):
    """y[0] = lanes of a;  y[1] = lanes of b;  ...
      ->  y[0..count] = [all of a, all of b, ...], by shuffles of two vectors at a time

    Of sums along vectors, where so many points side by side lie behind each other in
    the result.  Blocks that do not fill `count` are reduced one by one.
    """

    stage: str
    count: int

    def require(self, nest: LoopNest, placement: Placement) -> None:
        require_power(self, "count", self.count, MOST)
        lanes = lanes_along_k(placement)
        if lanes is None or lanes.scalable or lanes.count < max(FEWEST, self.count):
            reason = f"the vectors of {self.stage} are no {self.count} lanes of a sum"
            refuse(self, reason)
        points = points_of(nest, placement)
        stage = nest.stage(self.stage)
        (written, *others), innermost = stage.writes, points[-1:]
        beside = not others and not nest.buffer(written.buffer).is_strided
        beside = beside and written.plain[-1:] == tuple(x.axis for x in innermost)
        most = points[-1].trips if points else SINGLE
        if not beside or not isinstance(most, int) or most < self.count:
            reason = f"no {self.count} results of {self.stage} lie side by side"
            refuse(self, reason, "UnrollAndJam makes points of the innermost axis")


@dataclass(frozen=True)
class ReuseWindow(Note):
    """for v in 0..3: for p in 0..4: sums[p] += x[p + v] * w[v]
      ->  for q in 0..6: here = x[q]; for v in 0..3: sums[q - v] += here * w[v]

    Points side by side read places of each other: steps that are written out come in
    the order of these, so that each number is used while it is in a register.
    """

    stage: str

    def require(self, nest: LoopNest, placement: Placement) -> None:
        stage = nest.stage(self.stage)
        count = len(outer_loops(nest, placement))
        inner = placement.loops[count:]
        vectors = [x for x in inner if x.how is How.VECTOR]
        if not vectors or vectors[-1].is_reduction:
            refuse(self, f"{self.stage} has no vectors of points")
        moving = {x.axis for x in points_of(nest, placement)} - {vectors[-1].axis}
        sums = set(written_out(inner))
        if not any(
            moving & {*index.axes} and sums & {*index.axes}
            for read in stage.reads
            for index in read.indices
        ):
            reason = f"points of {self.stage} read no places of each other"
            refuse(self, reason, "unroll the window's axes, and jam the points")
        for each in nest.producers(self.stage):
            if is_read_by_number(nest, each) and at_tile(nest, each):
                refuse(self, f"sums of {self.stage} have fewer terms at {each.name}")


@dataclass(frozen=True)
class InitWithAddend(Note):
    """t = 0 + sum(f(i, k));  y = g(t + b[i])  ->  t = b[i] + sum(f(i, k));  y = g(t)

    Of a sum that is computed at the register tile of its only reader.  It has the
    terms that it had, in another order, and an addition less.
    """

    stage: str

    def require(self, nest: LoopNest, placement: Placement) -> None:
        stage = nest.stage(self.stage)
        body = [x for x in stage.body if x not in WIDENING]
        read = len(stage.body) - len(body)  # as they are, of types that are widened
        wide = read == len(placement.widened)
        if not stage.is_reduction or not {*body} <= PRODUCTS or not wide:
            refuse(self, f"{self.stage} is no sum of products of floats")
        if [float(x.partition(" ")[0]) if x else None for x in stage.starts] != [0.0]:
            refuse(self, f"{self.stage} does not begin with zero")
        if not at_tile(nest, stage):
            refuse(self, f"{self.stage} is not computed at its reader's register tile")
        if not any(added_terms(nest, stage)):
            refuse(self, f"nothing that lies in memory is added to {self.stage} alone")


def added_terms(nest: LoopNest, stage: Statement) -> Iterator[bool]:
    """For what the only reader of a sum adds to it: whether it is in memory."""
    (write,) = stage.writes
    found = [(s, n) for s in nest.stages for n, x in enumerate(s.reads)
             if x.buffer == write.buffer]  # fmt: skip
    if len(found) != 1:
        return
    ((reader, number),) = found
    for one, other in reader.adds:
        if one == number:
            writer = nest.writer(reader.reads[other].buffer)
            yield writer is None or not at_tile(nest, writer)


def lanes_along_k(placement: Placement) -> Lanes | None:
    """Those of a stage whose vectors lie along a sum."""
    vectors = [x for x in placement.loops if x.how is How.VECTOR]
    last = vectors[-1] if vectors else None
    if last is None or not last.is_reduction or not isinstance(last.trips, Lanes):
        return None
    return last.trips


def points_of(nest: LoopNest, placement: Placement) -> list[Loop]:
    """The loops whose steps stand side by side, but for lanes; the innermost last."""
    count = len(outer_loops(nest, placement))
    rows = [x for x in placement.loops[count:] if is_point(x)]
    lanes = [x for x in rows if x.how is How.VECTOR]
    points = [x for x in rows if x not in lanes[-1:]]
    said = order(nest, placement)
    place = nest.stage(placement.stage).place
    return sorted(points, key=lambda x: said.index(place(x.axis))) if said else points


def written_out(loops: tuple[Loop, ...]) -> Iterator[str]:
    """The innermost axes of sums all of whose steps stand behind each other."""
    for loop in reversed([x for x in loops if x.is_reduction]):
        serial = [x for x in loops if x.axis == loop.axis and x.how is How.SERIAL]
        if any(x.trips != 1 for x in serial):
            return
        yield loop.axis
