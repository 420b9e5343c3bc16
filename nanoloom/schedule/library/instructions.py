"""The instruction that adds several steps of a vectorized sum of products at once.

    sums[c] += a[k] * b[k, c] + ... + a[k + 3] * b[k + 3, c]

Of vectors of any width along the columns, one of products of rows, of two rows at once,
or of numbers of a row in lanes; of vectors along the sum, one of neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from nanoloom.nest.extent import Lanes
from nanoloom.nest.index import Access
from nanoloom.nest.loop import How, Loop, Placement
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.statement import Statement
from nanoloom.schedule.directives.instruction import adds_products
from nanoloom.schedule.inner_loops import is_point, order, outer_loops
from nanoloom.schedule.lane_factors import is_wide_room, wide_lane_factors
from nanoloom.schedule.language import Directive, Instruction, Pack, Stationary
from nanoloom.target.facts import Target
from nanoloom.target.instructions.aarch64 import LANE_PRODUCT
from nanoloom.target.instructions.choose import (
    plain_dot,
    scalable_uses,
)
from nanoloom.target.instructions.instruction import BITS, LANE


def instruction_of(
    name: str, words: tuple[Directive, ...], nest: LoopNest, target: Target
) -> list[Instruction]:
    """The directive for a stage of a nest behind some words, if there is one."""
    stage, placement = nest.stage(name), nest.placement(name)
    vectors = [x for x in placement.loops if x.how is How.VECTOR]
    stays = any(isinstance(x, Stationary) and x.stage == name for x in words)
    other = placement.by is not None and not stays  # it has an instruction of its own
    if not vectors or other or not adds_products(stage):
        return []
    lanes = vectors[-1].trips
    assert isinstance(lanes, Lanes), "vectors have lanes"
    found = ""
    if vectors[-1].is_reduction:
        found = along_sum(stage, lanes, target) if stays else ""
    elif lanes.scalable and not stays:
        packs = {x.argument: x for x in words if isinstance(x, Pack) and not x.bits}
        found = Columns.of(nest, placement, lanes, packs).instruction(target)
    return [Instruction(name, found)] if found else []


def along_sum(stage: Statement, lanes: Lanes, target: Target) -> str:
    """Of numbers that fill registers along their sum."""
    use = plain_dot(target, *(read.element for read in stage.reads))
    whole = use is not None and not lanes.count % target.lanes(BITS[use.dot.right])
    return use.dot.name if use is not None and whole and not lanes.scalable else ""


@dataclass(frozen=True)
class Columns:
    """A sum of products whose scalable vectors lie along its columns.

    axis, deepest: of the columns, and the innermost one of the sum.  inner: the loops
    of its vector code.  packs: of weights, by their arguments.
    """

    nest: LoopNest
    stage: Statement
    lanes: Lanes
    axis: str
    deepest: str
    inner: tuple[Loop, ...]
    packs: dict[int, Pack]

    @staticmethod
    def of(
        nest: LoopNest, placement: Placement, lanes: Lanes, packs: dict[int, Pack]
    ) -> Columns:
        stage = nest.stage(placement.stage)
        said = order(nest, placement) or range(len(stage.axes))
        sums = [stage.names[d] for d in said if stage.axes[d].is_reduction]
        inner = placement.loops[len(outer_loops(nest, placement)) :]
        axis = [x.axis for x in inner if x.how is How.VECTOR][-1]
        return Columns(nest, stage, lanes, axis, sums[-1], inner, packs)

    def instruction(self, target: Target) -> str:
        """Its name, "" where nothing multiplies groups, or none of them lies so."""
        same = [self.axis not in read.axes for read in self.stage.reads]
        if True not in same:
            return ""
        reads, left = self.stage.reads, same.index(True)
        right = reads[1 - left]
        if not is_along(reads[left], self.deepest):
            return ""
        lies = is_along(right, self.axis)
        for use in scalable_uses(target, reads[left].element, right.element):
            dot = use.dot
            woven = self.in_groups(right, dot.steps)
            by_registers = lies and dot.rows == 1 and not self.steps % dot.steps
            wide = dot.bits // LANE * (1 if woven else dot.steps)
            if (woven or by_registers) and not self.lanes.count % wide:
                return dot.name
        return LANE_PRODUCT.name if lies and self.in_lanes(target) else ""

    def in_groups(self, right: Access, group: int) -> bool:
        """Whether so many steps of each column lie together in a packed operand."""
        pack = self.packs.get(self.nest.buffer(right.buffer).argument)
        if pack is None or pack.group != group or group == 1:
            return False
        places = right.indices[pack.column].axis, right.indices[pack.reduced[-1]].axis
        return places == (self.axis, self.deepest)

    def in_lanes(self, target: Target) -> bool:
        """Whether a row's numbers of several steps are one load, and have room."""
        group, floats = wide_lane_factors(target), {x.element for x in self.stage.reads}
        if not group or floats | {self.stage.writes[0].element} != {"f32"}:
            return False
        if self.lanes.count != group or self.steps % group:
            return False
        points = [x for x in self.inner if is_point(x) and isinstance(x.trips, int)]
        rows = prod(int(x.trips) for x in points if x.axis != self.axis)  # type: ignore[call-overload] - `points` are numbers
        vectors = prod(int(x.trips) for x in points if x.axis == self.axis)  # type: ignore[call-overload] - `points` are numbers
        return is_wide_room(rows, vectors, target)

    @property
    def steps(self) -> int:
        """Of the innermost sum, behind each other."""
        found = [x.trips for x in self.inner
                 if x.axis == self.deepest and x.how is How.UNROLLED]  # fmt: skip
        return found[0] if found and isinstance(found[0], int) else 1


def is_along(read: Access, axis: str) -> bool:
    """Whether steps of an axis are neighbours."""
    return axis in read.axes and read.follows_on(axis)
