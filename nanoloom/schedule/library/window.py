"""A reduction over windows, whose vectors run along a parallel axis."""

from __future__ import annotations

from dataclasses import dataclass

from nanoloom.nest.granularity import JAMMED, MOST_WRITTEN
from nanoloom.nest.index import Access, Index
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.statement import Statement
from nanoloom.schedule.inner_loops import FURTHEST
from nanoloom.schedule.library.row_tasks import numbers
from nanoloom.schedule.library.vector_axis import axis_of, is_sliding, pixels_of
from nanoloom.target.facts import Target


@dataclass(frozen=True)
class Window:
    """A reduction whose vectors run along a parallel axis.

    stage: it.  pixels: the axis beside the vectors'.  in_planes: vectors are of pixels,
    which slide, and the axis in front is of channels, which share nothing but in dense
    layers: these read the same pixels.
    """

    stage: Statement
    pixels: int
    in_planes: bool = False
    is_dense: bool = False

    @property
    def shares(self) -> bool:
        """Whether channels of planes that are made at once read the same pixels."""
        return self.in_planes and self.is_dense

    @property
    def overlaps(self) -> bool:
        """Whether pixels read what others read: their taps are of the same numbers."""
        image = [x for x in self.stage.reads if is_sliding(x, self.along)]
        taps = {axis.name for axis in self.stage.axes if axis.is_reduction}
        return not any(
            taps <= {index.axes[0] for index in x.indices if len(index.axes) == 1}
            for x in image
        )

    @property
    def along(self) -> str:
        """The axis of vectors."""
        return self.stage.names[self.pixels + 1]

    @property
    def row(self) -> Index:
        """Where pixels of a row of planes are read."""
        reads = self.stage.reads
        return next(x.indices[-1] for x in reads if is_sliding(x, self.along))

    @property
    def step(self) -> int:
        """How many pixels windows in planes go along a row."""
        return self.row.factor(self.along) or 1

    @property
    def tap(self) -> int:
        """The axis of a sum that goes along a row of planes."""
        (tap,) = (axis for axis in self.row.axes if axis != self.along)
        return self.stage.place(tap)


def window_of(nest: LoopNest, last: Statement, target: Target) -> Window | None:
    """The only reduction of a kernel, if its results are vectors in rows of rows."""
    working = [stage for stage in nest.stages if stage.reads]
    reductions = [stage for stage in working if stage.is_reduction]
    if len(reductions) != 1 or 0 in numbers(last):
        return None
    (stage,) = reductions
    parallel = stage.leading_parallel()
    written = stage.writes[0].plain
    if parallel < 2 or len(stage.writes) > 1 or written != stage.names[:parallel]:
        return None
    axes = axis_of(stage, target), pixels_of(stage)
    if parallel - 1 not in axes or len(last.axes) < parallel:
        return None
    along = written[-1] or ""
    in_planes = any(is_loaded(x, along, stage, target) for x in stage.reads)
    if parallel == 2 and not in_planes:
        return None
    if working[0] != stage or not all(
        x.lies_along(along) or (in_planes and is_sliding(x, along)) for x in stage.reads
    ):
        return None
    follows = all(s.extents == stage.extents[:parallel] for s in working[1:])
    image = [x for x in stage.reads if is_sliding(x, along)]
    dense = parallel > 2 and any(stage.names[parallel - 3] not in x.axes for x in image)
    return Window(stage, parallel - 2, in_planes, dense) if follows else None


def is_loaded(x: Access, along: str, stage: Statement, target: Target) -> bool:
    """Whether windows over a row of pixels are read in vectors of these."""
    near = x.follows_on(along, FURTHEST)
    free = target.vector.any_length or stage.is_contraction or near
    return free and is_sliding(x, along)


def unrolled(window: Window) -> tuple[int, ...]:
    """The innermost axes of the window that are few enough taps."""
    stage = window.stage
    if window.shares:
        return (window.tap,)
    found: list[int] = []
    taps = 1
    for place in range(len(stage.axes) - 1, -1, -1):
        extent = stage.axes[place].extent
        if not stage.axes[place].is_reduction or not isinstance(extent, int):
            break
        taps *= extent
        if JAMMED * taps > MOST_WRITTEN:  # of some pixels at once
            break
        found.append(place)
    return tuple(reversed(found))
