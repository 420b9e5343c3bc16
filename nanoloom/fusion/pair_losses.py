"""Whether one kernel of two groups takes less time than two, as far as memory decides.

Cost is what blocks compute again, and what they bring into the cache again, against the
bytes that stay there (cost/profit.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from nanoloom.cost.profit import Profit, profit
from nanoloom.nest.contraction import bits
from nanoloom.nest.footprint import Sizes
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.panel_parts import PANEL_VECTORS, panel_parts
from nanoloom.nest.parts import blocks, reuses_panels, task_axes
from nanoloom.nest.statement import Statement
from nanoloom.nest.tasks import in_tasks
from nanoloom.target.facts import Target


@dataclass(frozen=True)
class Pair:
    """Two groups as a nest, of whose stages the first `count` would be made in tasks of
    the others: whole rows of them (rows), or panels.

    permutes: whether another order of axes is joined as well.  windows: whether what
    follows reduces windows.
    """

    nest: LoopNest
    count: int
    rows: bool
    permutes: bool
    windows: bool


@dataclass(frozen=True)
class Losses:
    """Why pairs do not pay.

    known: whether all sizes are: blocks that their number decides are of known ones
    alone.  open_images: whether rows and pixels of images are not: whether a task has
    room for a whole one may not depend on a sample.  found: of pairs that were asked
    about; a network repeats its blocks, and a pair of a block is the same nest in each.
    """

    target: Target
    known: bool
    open_images: bool
    found: dict[Pair, str | None] = field(default_factory=dict[Pair, "str | None"])

    def of(self, pair: Pair) -> str | None:
        """ "" for one that pays, None where that is no question."""
        if pair not in self.found:
            self.found[pair] = self.in_rows(pair) if pair.rows else self.in_panels(pair)
        return self.found[pair]

    def in_panels(self, pair: Pair) -> str | None:
        """Why a task's part of what is read does not stay in the cache, or why that
        does not pay."""
        nest, target = pair.nest, self.target
        found = panel_parts(nest, nest.stages[pair.count - 1])
        if found is None:
            return "no block of it is a block of what a product makes"
        if found.is_permutation:
            return "" if pair.permutes else None
        columns, cache = PANEL_VECTORS * target.lanes(bits("f32")), target.caches
        sizes = found.blocks(columns, cache)
        if found.is_scattered:
            return "small windows side by side on several axes read few rows together"
        whole = self.open_images and reads_whole_axes(found.consumer)
        if not whole and not found.fit(sizes, cache):
            return "what a block of its reader reads is more than half of the cache"
        if not any(map(found.overlap, found.names)):
            return ""
        if not self.known:
            return "its windows overlap, and its sizes are not known"
        if any(stage.has_functions for stage in found.following):
            return "functions behind its windows read them in memory"
        fused = in_tasks(nest, found.last, sizes)
        made = profit(apart(pair), fused, target, found.idle)
        return "" if made.cycles > 0 else loss(made)

    def in_rows(self, pair: Pair) -> str | None:
        """The same for whole rows, and for windows of what is no product."""
        nest, target = pair.nest, self.target
        if not self.known or nest.last is None:
            return None
        kinds = {x.element for stage in nest.stages for x in stage.reads}
        if kinds != {"f32"} and not pair.windows:
            return "not all of its numbers are f32"
        sizes = blocks(nest)
        if not sizes:
            return "one task makes all of what reads it"
        fused = in_tasks(nest, nest.last, sizes)
        if not reuses_panels(fused, target):
            return "few rows of it would read all of the weights again"
        made = profit(nest, fused, target)
        return "" if made.cycles >= 0 else loss(made)


def reads_whole_axes(stage: Statement) -> bool:
    """Whether a reduction has an axis of what it reads for itself: no window of it."""
    single = [x.axes for x in stage.reads[0].indices if len(x.terms) == 1]
    reduced = {axis.name for axis in stage.axes if axis.is_reduction}
    return any(reduced & set(axes) for axes in single)


def apart(pair: Pair) -> LoopNest:
    """Both as kernels of their own, whose stages follow each other row by row."""
    nest = pair.nest
    for part in (nest.stages[: pair.count], nest.stages[pair.count :]):
        last = part[-1]
        own = nest.of_stages(part, [write.buffer for write in last.writes])
        ones: Sizes = {last.names[d]: 1 for d in task_axes(own)}
        nest = in_tasks(nest, last, ones, part)
    return nest


def loss(made: Profit) -> str:
    return (
        f"blocks of its reader would spare the cache {made.spared:,} B and compute "
        f"{made.again:,} points again"
    )
