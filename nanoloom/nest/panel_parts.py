"""A product's result, read at other places in the tasks that make it.

    t[r, f] = product, with what follows it at the same places
    p[.., f] = windows of t, sums of its rows, or t in another order of its axes
    y = what follows p at the same places

A task makes a block of y: a panel of columns f, of the points of t that it reads.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

from nanoloom.nest.contraction import (
    FEW_ROWS,
    Contraction,
    bits,
    elements,
    is_product,
    roles,
)
from nanoloom.nest.footprint import Sizes, footprint
from nanoloom.nest.granularity import BLOCK_ROWS, FEWEST_TASKS
from nanoloom.nest.nest import LoopNest, Role
from nanoloom.nest.parts import in_block, is_linear
from nanoloom.nest.statement import Statement
from nanoloom.nest.steps import number, points, read_inside, whole
from nanoloom.target.facts import Cache

PANEL_VECTORS = 2  # of columns, about, before the register tile is chosen
ANY = sys.maxsize  # points: an index may reach as far


@dataclass(frozen=True)
class PanelParts:
    """A nest with one product, which is computed in its consumer's tasks up to `end`.

    consumer: what reads `end`, or a border around it; what follows that is at its own
    places.
    """

    nest: LoopNest
    end: Statement
    consumer: Statement

    @cached_property
    def product(self) -> Statement:
        return next(filter(is_product, self.nest.products))

    @cached_property
    def shape(self) -> Contraction:
        shape = roles(self.product)
        assert shape is not None, "what is joined has roles"
        return shape

    @property
    def last(self) -> Statement:
        """The consumer, or what follows it."""
        assert self.nest.last is not None, "what is joined has a last stage"
        return self.nest.last

    @property
    def pad(self) -> Statement | None:
        """A border around `end`, None for none."""
        read = self.nest.consumers(self.end.name)
        return next((stage for stage in read if stage.inside is not None), None)

    @property
    def following(self) -> list[Statement]:
        """What is behind the consumer."""
        begin = self.nest.stages.index(self.consumer) + 1
        behind = self.nest.stages[begin:]
        return [s for s in behind if s.reads or s.inside is not None]

    @property
    def is_permutation(self) -> bool:
        """Whether each point is read once, at axes of its own."""
        return not self.consumer.is_reduction

    @property
    def is_packed(self) -> bool:
        """Whether panels of the right operand are made while compiling."""
        right = self.product.reads[self.shape.right].buffer
        return self.nest.buffer(right).role is Role.CONSTANT

    @cached_property
    def names(self) -> list[str]:
        """The axes of the result, as the last stage calls them."""
        return [name for name in self.last.writes[0].plain if name]

    @property
    def column(self) -> str:
        """The axis of the last stage that panels of columns go along."""
        read = self.consumer.reads[0].indices[-1].axis
        return self.names[self.consumer.writes[0].plain.index(read)]

    @property
    def front(self) -> LoopNest:
        """The product up to what is read, as a kernel of its own."""
        stages = (*self.nest.upstream(self.end.name), self.end)
        return self.nest.of_stages(stages, (self.end.writes[0].buffer,))

    def front_of(self, block: Sizes) -> LoopNest:
        """The same, of all columns of the rows that a block reads."""
        front, rows = self.front, {n: block[n] for n in self.names if n != self.column}
        begin = front.stages.index(self.product)
        made = in_block(self.nest, front.stages[begin:], rows)
        return replace(front, stages=(*front.stages[:begin], *made))

    def behind(self, block: Sizes) -> LoopNest:
        """What reads it, of a block, as a kernel of its own."""
        before = {*self.front.stages, self.pad}
        stages = [x for x in self.nest.stages if x not in before]
        sizes: Sizes = {n: min(number(x), self.extent(n)) for n, x in block.items()}
        stages = in_block(self.nest, stages, sizes)
        return self.nest.of_stages(stages, self.nest.results)

    @property
    def idle(self) -> int:
        """Points that register tiles have behind the rows of an image, as if they were
        of few rows: those of a kernel of its own go on in the next row."""
        rows = [self.shape.extents[d] for d in self.shape.rows]
        wide = rows[-1] if sum(n > 1 for n in rows) > 1 else FEW_ROWS
        if None in self.product.reads[self.shape.left].plain:
            return 0
        return points(whole(self.product)) * (-wide % FEW_ROWS) // wide

    def blocks(self, columns: int, cache: Cache) -> Sizes:
        """Points of the last stage's axes that a task makes.

        columns: of a panel.  cache: of a core.  Windows that lie
        side by side are made some at a time.  Of those that overlap as many as leave a
        part of t in the cache, and tasks for any number of threads: the fewest rows are
        made by two tasks then.
        """
        sizes: Sizes = {n: columns if n == self.column else 1 for n in self.names}
        is_whole = True
        for name in reversed(self.names):
            extent = self.extent(name)
            for step, reach in self.windows(name):
                if reach <= step:
                    most = -(-2 * BLOCK_ROWS // reach) if reach < 4 * FEW_ROWS else 1
                    blocks = -(-extent // most)
                    sizes[name] = -(-extent // blocks)
                elif is_whole:  # of the axes behind, or they would be made in part
                    tried = ({**sizes, name: n} for n in range(extent, 1, -1))
                    sizes = next((x for x in tried if self.fit(x, cache)), sizes)
                    is_whole = sizes[name] == extent
        return self.with_tasks(sizes)

    def extent(self, name: str) -> int:
        """Of an axis of the last stage."""
        return number(self.last.axes[self.last.place(name)].extent)

    @property
    def is_scattered(self) -> bool:
        """Whether small windows lie side by side along several axes.

        The rows of a task would be few, or apart: pools of 2x2 in the kernels of the
        convolutions in front of them were tried, and are no faster there.
        """
        small = [
            name
            for name in self.names
            for step, reach in self.windows(name)
            if reach <= step
            and reach < 4 * FEW_ROWS
            and self.extent(name) * step > FEW_ROWS
        ]
        return len(small) > 1

    def fit(self, block: Sizes, cache: Cache) -> bool:
        """Whether a task's part of t leaves room in a cache."""
        block = whole(self.last) | block
        made = read_inside(self.nest, self.end, self.last.name, block)
        return points(made) * bits("f32") // bits("u8") <= cache.resident

    def with_tasks(self, sizes: Sizes) -> Sizes:
        """Enough blocks, all alike along the outermost axis of windows that overlap."""
        for name in [n for n in self.names if self.overlap(n)][:1]:
            others = (n for n in self.names if n != name)
            tasks = prod(-(-self.extent(n) // number(sizes[n])) for n in others)
            most = -(-self.extent(name) // -(-FEWEST_TASKS // tasks))
            blocks = -(-self.extent(name) // min(number(sizes[name]), most))
            sizes = {**sizes, name: -(-self.extent(name) // blocks)}
        return sizes

    def overlap(self, name: str) -> bool:
        """Whether windows overlap along an axis of the last stage."""
        return any(reach > step for step, reach in self.windows(name))

    def windows(self, name: str) -> list[tuple[int, int]]:
        """How far apart windows are along an axis of the last stage, and how far each
        of them reaches; [] where none move along it."""
        stage = self.consumer
        axis = stage.writes[0].plain[self.names.index(name)] or ""
        one = {a.name: 1 for a in stage.axes if not a.is_reduction}
        return [
            (index.factor(axis) or 0, number(footprint(index, whole(stage) | one, ANY)))
            for index in stage.reads[0].indices
            if len(index.terms) > 1 and axis in index.axes
        ]


def panel_parts(nest: LoopNest, end: Statement) -> PanelParts | None:
    """The parts of a nest with one product that is read behind `end`; None where no
    block of its reader is a block of columns."""
    readers = nest.consumers(end.name)
    if sum(map(is_product, nest.stages)) != 1 or nest.last is None:
        return None
    if len(readers) != 1 or end.writes[0].buffer in nest.results:
        return None
    found = PanelParts(nest, end, *readers)
    known = is_permuted if found.is_permutation else is_reduced
    whole = makes_columns(found) and is_at_its_places(found)
    return found if whole and known(found) else None


def planned_panels(nest: LoopNest) -> PanelParts | None:
    """The parts of a nest whose plan has a product in what reads its result so."""
    pairs = ((nest.stage(x.producer), nest.stage(x.consumer)) for x in nest.plan)
    behind = next((pair for pair in pairs if not is_product(pair[1])), None)
    if behind is None or sum(map(is_product, nest.stages)) != 1:
        return None
    end, reader = behind
    known = is_transpose(reader) or is_by_columns(reader)
    return PanelParts(nest, end, reader) if known else None


def makes_columns(found: PanelParts) -> bool:
    """Whether a product is of f32, and a panel of columns is packed, or is read where
    it lies by few rows."""
    product, shape = found.product, found.shape
    if 0 in shape.extents or len(shape.extents) != len(product.axes):
        return False
    right = product.reads[shape.right]
    if set(elements(product, shape)) != {"f32"} or None in right.plain:
        return False
    if found.is_packed:
        return bool(shape.rows)
    rows = prod(shape.extents[d] for d in shape.rows)
    single = len(shape.rows) == 1 and len(shape.reduced) == 1 and rows <= FEW_ROWS
    return shape.contiguous and single


def is_at_its_places(found: PanelParts) -> bool:
    """Whether what follows a product up to `end` is at the product's places."""
    made = {write.buffer for write in found.product.writes}
    for stage in found.front.stages:
        read = [x.indices for x in stage.reads if x.buffer in made]
        if not all(map(stage.follows, read)):
            return False
        made |= {write.buffer for write in stage.writes if read}
    return found.end.writes[0].buffer in made


def is_permuted(found: PanelParts) -> bool:
    """Whether a stage writes all of a packed product in another order of its axes, and
    is the last.

    The sums of a matrix alone may be cut, and are written from a place of their own.
    """
    cut = found.end == found.product and len(found.shape.reduced) == 1
    alone = found.is_packed and not found.following
    return alone and is_transpose(found.consumer) and not cut


def is_reduced(found: PanelParts) -> bool:
    """Whether a stage reduces columns, and all behind it is at its own places."""
    made = {write.buffer for write in found.consumer.writes}
    for stage in found.following:
        made |= {write.buffer for write in stage.writes}
        own = [*stage.writes, *(read for read in stage.reads if read.buffer in made)]
        if stage.is_reduction or any(access.plain != stage.names for access in own):
            return False
    return is_by_columns(found.consumer)


def is_transpose(stage: Statement) -> bool:
    """Whether a stage writes all that it reads, in another order of its axes."""
    if stage.body or stage.is_reduction or stage.inside is not None:
        return False
    if len(stage.reads) != 1 or len(stage.writes) != 1:
        return False
    read, written = stage.reads[0].plain, stage.writes[0].plain
    same = written == stage.names and sorted(map(str, read)) == sorted(stage.names)
    return same and read[-1:] != written[-1:]


def is_by_columns(stage: Statement) -> bool:
    """Whether a stage reduces rows of what it reads, each column by itself."""
    if not is_linear(stage) or not stage.writes[0].plain or is_product(stage):
        return False
    read = stage.reads[0]
    once = {*read.axes} == {*stage.names} and all(i.terms for i in read.indices)
    return once and read.plain[-1] == stage.writes[0].plain[-1]
