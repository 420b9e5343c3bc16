"""The tiles of a nanokernel that are not full: the last ones of rows and of columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from nanoloom.nest.contraction import Contraction, roles
from nanoloom.nest.implicit_padding import AT_SOURCE
from nanoloom.nest.loop import How, Loop, Placement, TileCode
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.statement import Axis
from nanoloom.schedule.directives.directive import refuse, require_number, require_tuple
from nanoloom.schedule.directives.note import Note
from nanoloom.schedule.families import FAMILIES, FMA_FAMILY
from nanoloom.schedule.inner_loops import outer_loops

MULTIPLY_ADDS = FMA_FAMILY.name


class TailNote(Note):
    """A directive for tiles of multiply-adds that may be partial."""

    @property
    def families(self) -> tuple[str, ...]:
        """Of nanokernels that it can be said of."""
        return (MULTIPLY_ADDS,)

    def code(self, placement: Placement) -> TileCode:
        """The nanokernel that it is said of."""
        code = placement.by
        if code is None or code.family not in self.families or code.copies_rhs:
            more = "".join(f" or {name}" for name in self.families[1:])
            reason = f"{self.stage} is no nanokernel of multiply-adds{more}"
            refuse(self, reason, "say this behind a Nanokernel without copy_rhs")
        return code

    def axis(self, nest: LoopNest, placement: Placement) -> Axis:
        """The axis that the tile's rows run along."""
        axis = row_axis(nest, placement)
        if axis is None:
            refuse(self, f"a tile of {self.stage} has a single row")
        return axis


@dataclass(frozen=True)
class Versions(TailNote):
    """for tile: for k: sums of 6 rows
      ->  for tile: if n > 4: sums of 6 rows  elif n > 2: of 4  else: of 2

    n: the rows that a tile has, which may be fewer than the register tile's.  rows: of
    the versions beside the full one, the largest first.  Without it every tile computes
    all rows, and stores those that there are.
    """

    stage: str
    rows: tuple[int, ...]

    @property
    def families(self) -> tuple[str, ...]:
        """Of multiply-adds, and of integers whose last tile of a panel may be short."""
        return tuple(x.name for x in FAMILIES.values() if x.versions)

    def require(self, nest: LoopNest, placement: Placement) -> None:
        code = self.code(placement)
        if code.family != MULTIPLY_ADDS and not code.packed:
            reason = f"the right operand of {self.stage} is not packed"
            refuse(self, reason, "say this of multiply-adds, or of packed panels")
        require_tuple(self, "rows", self.rows)
        for count in self.rows:
            require_number(self, "rows", count)
        if not self.rows or any(a <= b for a, b in pairwise((code.rows, *self.rows))):
            refuse(
                self, f"fewer than {code.rows} rows are wanted, the most of them first"
            )
        axis = self.axis(nest, placement)
        if not is_partial(nest, self.stage, axis.name, code.rows):
            refuse(
                self, f"every tile of {self.stage} has {code.rows} rows of {axis.name}"
            )


@dataclass(frozen=True)
class Balance(TailNote):
    """for i in 0..n by 8: rows = min(8, n - i)      of 9 rows 8, 1
      ->  for i in even steps: rows = 5, 4

    Of rows whose number is not known before: a last tile of a row or two takes nearly
    as long as one of four.
    """

    stage: str

    def require(self, nest: LoopNest, placement: Placement) -> None:
        code, axis = self.code(placement), self.axis(nest, placement)
        loops = loops_over(nest, self.stage, axis.name)
        place = [n for n, x in enumerate(loops) if is_over_tiles(x, code.rows)]
        if not place:
            refuse(self, f"no loop of a task goes over tiles of {axis.name}")
        known = not axis.is_sample and divide(axis, loops[: place[0]])
        if known:
            refuse(self, f"the tiles of {axis.name} are known: give them another size")
        for pad in nest.pads:
            if nest.placement(pad.name).stored == AT_SOURCE and goes_along(
                nest, self.stage, pad.name, axis.name
            ):
                reason = f"tiles at the ends of padded {axis.name} have to be whole"
                refuse(self, reason)


@dataclass(frozen=True)
class Tail(TailNote):
    """columns 112 in panels of 64: every tile has 4 vectors  ->  the last one has 3

    vectors: of the last tile of columns, whose panel is filled up with zeros.
    """

    stage: str
    vectors: int

    def require(self, nest: LoopNest, placement: Placement) -> None:
        code = self.code(placement)
        require_number(self, "vectors", self.vectors)
        if self.vectors >= code.vectors:
            refuse(self, f"a full tile has {code.vectors} vectors: fewer are wanted")
        if not code.packed or code.converts_lhs:
            reason = f"{self.stage} multiplies no panels by numbers as they are"
            refuse(self, reason)
        stage = nest.stage(self.stage)
        shape = roles(stage)
        assert shape is not None, "a nanokernel is of a contraction"
        axis = stage.axes[shape.column]
        columns = code.vectors * code.lanes.count
        if isinstance(axis.extent, int) and not axis.extent % columns:
            refuse(self, f"every tile of {self.stage} has {columns} columns")


def inner_loops(nest: LoopNest, placement: Placement) -> tuple[Loop, ...]:
    """The loops that a nanokernel is made of."""
    return placement.loops[len(outer_loops(nest, placement)) :]


def row_axis(nest: LoopNest, placement: Placement) -> Axis | None:
    """The last axis of rows of which a tile has several points."""
    stage = nest.stage(placement.stage)
    shape: Contraction | None = roles(stage)
    if shape is None:
        return None
    long = {x.axis for x in inner_loops(nest, placement) if x.trips != 1}
    axes = [stage.axes[d] for d in shape.rows]
    return next((axis for axis in reversed(axes) if axis.name in long), None)


def loops_over(
    nest: LoopNest, name: str, axis: str, within: Sequence[Loop] | None = None
) -> list[Loop]:
    """The loops around a stage's tile that go over an axis of it, outermost first.

    within: those of the stage's own, the ones around its tile without a word.
    """
    placement = nest.placement(name)
    loops = outer_loops(nest, placement) if within is None else within
    own = [x for x in loops if x.axis == axis]
    if placement.at is None:
        return own
    around, last = placement.at
    theirs = axis_of_reader(nest, name, around, axis)
    outer = nest.placement(around)
    further = outer.loops[: outer.names.index(last) + 1]
    return own if theirs is None else [*loops_over(nest, around, theirs, further), *own]


def axis_of_reader(nest: LoopNest, name: str, reader: str, axis: str) -> str | None:
    """What the loop of a stage that it is computed in calls an axis."""
    if name == reader:
        return axis
    (write,) = nest.stage(name).writes
    for each in nest.consumers(name):
        for read in each.taken:
            if read.buffer != write.buffer or axis not in write.plain:
                continue
            here = read.indices[write.plain.index(axis)].axis
            if here is not None:
                found = axis_of_reader(nest, each.name, reader, here)
                if found is not None:
                    return found
    return None


def has_all_points(nest: LoopNest, name: str, axis: Axis) -> bool:
    """Whether a kernel's result has every point of an axis of a stage.

    Else its readers may want fewer of them: windows that leave the last ones out.
    """
    if nest.last is None:
        return False
    theirs = axis_of_reader(nest, name, nest.last.name, axis.name)
    found = None if theirs is None else nest.last.axis(theirs)
    return found is not None and found.extent == axis.extent


def is_partial(nest: LoopNest, name: str, axis: str, rows: int) -> bool:
    """Whether some tiles have fewer points of an axis than others."""
    found = nest.stage(name).axis(axis)
    assert found is not None
    loops = loops_over(nest, name, axis)
    tile = loops[-1].step if loops else found.extent
    return found.is_sample or tile != rows or not divide(found, loops)


def divide(axis: Axis, loops: list[Loop]) -> bool:
    """Whether blocks of an axis are full ones."""
    sizes = [axis.extent, *(x.step for x in loops)]
    return all(
        isinstance(a, int) and isinstance(b, int) and a % b == 0
        for a, b in pairwise(sizes)
    )


def is_over_tiles(loop: Loop, rows: int) -> bool:
    return loop.how is How.SERIAL and loop.step == rows


def goes_along(nest: LoopNest, name: str, pad: str, axis: str) -> bool:
    """Whether a stage's axis goes along one that a pad makes longer."""
    stage, padding = nest.stage(name), nest.stage(pad)
    assert padding.inside is not None
    made = {write.buffer for write in padding.writes}
    read = next((x for x in stage.reads if x.buffer in made), None)
    if read is None:
        return False
    moved = {
        padding.place(a)
        for index in padding.inside.indices
        for a in index.axes
        if index.axis is None or extent_of(nest, padding.inside.buffer, a, pad)
    }
    return any(
        place in moved and axis in index.axes
        for place, index in enumerate(read.indices)
    )


def extent_of(nest: LoopNest, buffer: str, axis: str, pad: str) -> bool:
    """Whether a pad is longer than what is within it along an axis."""
    stage = nest.stage(pad)
    (place,) = (
        n
        for n, index in enumerate(stage.inside.indices if stage.inside else ())
        if index.axis == axis
    )
    return stage.axes[stage.place(axis)].extent != nest.buffer(buffer).shape[place]
