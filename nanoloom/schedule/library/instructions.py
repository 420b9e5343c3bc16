"""The instruction that adds several steps of a vectorized sum of products at once.

    sums[c] += a[k] * b[k, c] + ... + a[k + 3] * b[k + 3, c]

Of vectors of any width along the columns, one of products of rows, of two rows at once,
or of numbers of a row in lanes; of vectors along the sum, one of bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from nanoloom.nest.contraction import bits
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
    MATRIX_ROWS,
    bytes_dot,
    scalable_dot,
    scalable_matrix,
)
from nanoloom.target.instructions.instruction import LANE


def instruction_of(
    name: str, words: tuple[Directive, ...], nest: LoopNest, target: Target
) -> list[Instruction]:
    """The directive for a stage of a nest behind some words, if there is one."""
    stage, placement = nest.stage(name), nest.placement(name)
    vectors = [x for x in placement.loops if x.how is How.VECTOR]
    if not vectors or placement.by is not None or not adds_products(stage):
        return []
    lanes = vectors[-1].trips
    assert isinstance(lanes, Lanes), "vectors have lanes"
    found = ""
    if vectors[-1].is_reduction:
        if any(isinstance(x, Stationary) and x.stage == name for x in words):
            found = along_sum(stage, lanes, target)
    elif lanes.scalable:
        packs = {x.argument: x for x in words if isinstance(x, Pack) and not x.bits}
        found = Columns.of(nest, placement, lanes, packs).instruction(target)
    return [Instruction(name, found)] if found else []


def along_sum(stage: Statement, lanes: Lanes, target: Target) -> str:
    """Of bytes that fill registers along their sum."""
    if lanes.scalable or lanes.count % target.lanes(bits("u8")):
        return ""
    use = bytes_dot(target, *(read.element for read in stage.reads))
    return "" if use is None else use.dot.name


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
        left = same.index(True)
        types = (self.stage.reads[n].element for n in (left, 1 - left))
        one, other = types
        use, pair = (
            scalable_dot(target, one, other),
            scalable_matrix(target, one, other),
        )
        grouped = is_along(self.stage.reads[left], self.deepest)
        right = self.stage.reads[1 - left]
        lies = is_along(right, self.axis)
        if grouped and self.in_groups(
            right, MATRIX_ROWS * (use.dot.group if use else 1)
        ):
            fits = pair is not None and not self.lanes.count % (pair.dot.bits // LANE)
            return pair.dot.name if pair is not None and fits else ""
        if use is None:
            return (
                LANE_PRODUCT.name if grouped and lies and self.in_lanes(target) else ""
            )
        group, wide = use.dot.group, use.dot.bits // LANE
        woven = self.in_groups(right, group)
        if not grouped or not (woven or lies):
            return ""
        whole = not self.lanes.count % (wide if woven else wide * group)
        return use.dot.name if whole and (woven or not self.steps % group) else ""

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
        rows = prod(int(x.trips) for x in points if x.axis != self.axis)  # type: ignore[call-overload]
        vectors = prod(int(x.trips) for x in points if x.axis == self.axis)  # type: ignore[call-overload]
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
