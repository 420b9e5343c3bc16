"""What a register tile needs to know of a reduction that is like a product."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from nanoloom.nest.nest import LoopNest
from nanoloom.nest.statement import Statement
from nanoloom.schedule.library.row_tasks import numbers


@dataclass(frozen=True)
class Form:
    """A reduction that is like a product.

    column: the axis that vectors run along.  row: the axis of which points share the
    right operands, "" for none.  right: the operands that lie along the columns.
    blocks: other axes that the right operands do not depend on, outermost first.
    """

    stage: Statement
    row: str
    column: str
    right: tuple[int, ...]
    blocks: tuple[str, ...]

    def extent(self, *names: str) -> int:
        """How many points some axes have."""
        known = zip(self.stage.names, numbers(self.stage), strict=True)
        return prod(size for name, size in known if name in names)

    @property
    def parallel(self) -> tuple[str, ...]:
        return tuple(a.name for a in self.stage.axes if not a.is_reduction)

    @property
    def reduced(self) -> tuple[str, ...]:
        return tuple(a.name for a in self.stage.axes if a.is_reduction)


def form_of(nest: LoopNest, last: Statement) -> Form | None:
    """The only reduction of a kernel, if what it reads lies along its columns."""
    working = [stage for stage in nest.stages if stage.reads]
    reductions = [stage for stage in working if stage.is_reduction]
    if len(reductions) != 1:
        return None
    (stage,) = reductions
    axes = [axis for axis in stage.axes if not axis.is_reduction]
    names, written = tuple(a.name for a in axes), stage.writes[0].plain
    known = all(isinstance(extent, int) and extent for extent in stage.extents)
    if not known or not names or len(stage.writes) > 1 or written != names:
        return None
    column, lanewise = names[-1], stage.lanewise
    if not lanewise or not all(read.lies_along(column) for read in stage.reads):
        return None
    others = [other for other in working if other != stage]
    if any(other.extents != tuple(a.extent for a in axes) for other in others):
        return None
    others = [other for other in nest.stages if other.inside is None]
    made = {write.buffer for other in others for write in other.writes}
    if made & {read.buffer for read in stage.reads} or len(last.axes) < len(names):
        return None
    right = [n for n, read in enumerate(stage.reads) if column in read.axes]
    if not right:
        return None
    needed = {axis for n in right for axis in stage.reads[n].axes}
    free = [axis for axis in names[:-1] if axis not in needed]
    long = [axis for axis in free if stage.extents[stage.place(axis)] != 1]
    row = long[-1] if long else ""
    blocks = tuple(axis for axis in free if axis != row)
    return Form(stage, row, column, tuple(right), blocks)
