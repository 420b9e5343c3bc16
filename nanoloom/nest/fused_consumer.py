"""A product's result, read at other places in the tasks that make it.

    t[r, f] = product, with what follows it at the same places
    p[.., f] = windows of t, sums of its rows, or t in another order of its axes
    y = what follows p at the same places

A task makes a block of y: a panel of columns f, of the points of t that it reads.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from nanoloom.nest.contraction import FEW_ROWS, Contraction, bits, elements, roles
from nanoloom.nest.extent import Extent
from nanoloom.nest.footprint import Sizes, footprint, read_of
from nanoloom.nest.granularity import BLOCK_ROWS, FEWEST_TASKS
from nanoloom.nest.index import Access, Index
from nanoloom.nest.nest import LoopNest, Role
from nanoloom.nest.statement import Statement
from nanoloom.nest.steps import number, points, whole
from nanoloom.target.facts import Cache

PANEL_VECTORS = 2  # of columns, about, before the register tile is chosen
ANY = sys.maxsize  # points: an index may reach as far


@dataclass(frozen=True)
class FusedConsumer:
    """A product, what follows it at the same places up to `end`, and what reads that.

    pad: a border around `end`, None for none.  last: the consumer, or what follows it.
    """

    product: Statement
    end: Statement
    pad: Statement | None
    consumer: Statement
    last: Statement
    shape: Contraction

    @property
    def read(self) -> Access:
        """Where the consumer reads."""
        return self.consumer.reads[0]

    @property
    def is_permutation(self) -> bool:
        """Whether each point is read once, at axes of its own."""
        return not self.consumer.is_reduction

    @property
    def column(self) -> str:
        """The axis of the last stage that panels of columns go along."""
        place = self.consumer.writes[0].plain.index(self.read.indices[-1].axis)
        return self.names[place]

    @property
    def names(self) -> list[str]:
        """The axes of the result, as the last stage calls them."""
        return [name for name in self.last.writes[0].plain if name]

    def extent(self, name: str) -> int:
        """Of one of them."""
        return number(self.last.axes[self.last.place(name)].extent)

    def inside(self, nest: LoopNest) -> LoopNest:
        """The product up to what is read, as a kernel of its own."""
        stages = (*nest.upstream(self.end.name), self.end)
        return nest.of_stages(stages, (self.end.writes[0].buffer,))

    def product_of(self, nest: LoopNest, sizes: Sizes) -> LoopNest:
        """The same, of the rows that a block reads."""
        inside, made = self.inside(nest), self.made_of(sizes)
        rows = [made[name] for name in self.end.writes[0].plain[:-1] if name]
        begin = inside.stages.index(self.product)
        made_here = [of_sizes(stage, rows) for stage in inside.stages[begin:]]
        return replace(inside, stages=(*inside.stages[:begin], *made_here))

    def behind(self, nest: LoopNest, sizes: Sizes) -> LoopNest:
        """What reads it, of a block, as a kernel of its own."""
        before = {*self.inside(nest).stages, self.pad}
        rows = [sizes[name] for name in self.names]
        stages = [of_sizes(x, rows) for x in nest.stages if x not in before]
        return nest.of_stages(stages, nest.results)

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

    def fit(self, sizes: Sizes, cache: Cache) -> bool:
        """Whether a task's part of t leaves room in a cache."""
        return points(self.made_of(sizes)) * bits("f32") // bits("u8") <= cache.resident

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
        axis = self.consumer.writes[0].plain[self.names.index(name)]
        moved = (i for i in self.read.indices if len(i.terms) > 1 and axis in i.axes)
        return [(i.factor(axis or "") or 0, self.reach(i)) for i in moved]

    def reach(self, index: Index) -> int:
        """Points along an index that one point of the consumer reads."""
        single = {a.name: 1 for a in self.consumer.axes if not a.is_reduction}
        return number(footprint(index, whole(self.consumer) | single, ANY))

    def made_of(self, sizes: Sizes) -> Sizes:
        """The points of t that so many of the last stage read."""
        places = zip(self.consumer.writes[0].plain, self.names, strict=True)
        here = {axis: sizes[name] for axis, name in places if axis is not None}
        read = replace(self.read, buffer=self.end.writes[0].buffer)  # through a border
        reader = replace(self.consumer, reads=(read,))
        return whole(self.end) | read_of(self.end, reader, whole(reader) | here)


def fused_consumer(nest: LoopNest) -> FusedConsumer | None:
    """The parts of a nest with one product whose result may be read at other places."""
    if len(nest.products) != 1 or nest.last is None:
        return None
    (product,) = nest.products
    first = first_elsewhere(nest, product)
    if makes_columns(nest, product) is None or first is None:
        return None
    consumer = nest.readers(first.writes[0].buffer)[0] if first.inside else first
    source = first.inside.buffer if first.inside else consumer.reads[0].buffer
    end = nest.writer(source)
    if end is None or len(nest.consumers(end.name)) != 1 or source in nest.results:
        return None
    found = consumer_at(nest, end, consumer)
    known = is_reduced(found) if consumer.is_reduction else is_permuted(found, nest)
    return found if known and is_followed(nest, found) else None


def planned_consumer(nest: LoopNest) -> FusedConsumer | None:
    """The parts of a nest whose plan has a product in what reads its result."""
    pairs = ((nest.stage(x.producer), nest.stage(x.consumer)) for x in nest.plan)
    behind = next((pair for pair in pairs if not pair[1].is_contraction), None)
    if behind is None or [roles(x) is None for x in nest.products] != [False]:
        return None
    found = consumer_at(nest, *behind)
    return found if is_transpose(found.consumer) or is_reduced(found) else None


def consumer_at(nest: LoopNest, end: Statement, consumer: Statement) -> FusedConsumer:
    """The only product of a nest, computed up to `end` in its consumer's tasks."""
    (product,) = nest.products
    shape, last = roles(product), nest.last
    assert shape is not None and last is not None, "what may be fused has both"
    pads = (stage for stage in nest.consumers(end.name) if stage.inside is not None)
    return FusedConsumer(product, end, next(pads, None), consumer, last, shape)


def first_elsewhere(nest: LoopNest, product: Statement) -> Statement | None:
    """The first stage that reads what a product makes, or what follows it at the same
    places, at other places."""
    made = {write.buffer for write in product.writes}
    for stage in nest.stages[nest.stages.index(product) + 1 :]:
        if not stage.sources & made:
            continue
        read = [x.indices for x in stage.reads if x.buffer in made]
        if stage.inside is not None or not all(map(stage.follows, read)):
            return stage
        made |= {write.buffer for write in stage.writes}
    return None


def of_sizes(stage: Statement, sizes: Sequence[Extent]) -> Statement:
    """A stage with other extents of the first axes of its result."""
    extents = dict(zip(stage.writes[0].plain, sizes, strict=False))
    axes = (replace(a, extent=extents.get(a.name, a.extent)) for a in stage.axes)
    return replace(stage, axes=tuple(axes))


def makes_columns(nest: LoopNest, product: Statement) -> Contraction | None:
    """The roles of the axes of a product of f32, if a panel of columns is packed, or is
    read where it lies by few rows."""
    shape = roles(product)
    if shape is None or 0 in shape.extents or len(shape.extents) != len(product.axes):
        return None
    right = product.reads[shape.right]
    if set(elements(product, shape)) != {"f32"} or None in right.plain:
        return None
    if nest.buffer(right.buffer).role is Role.CONSTANT:
        return shape if shape.rows else None
    rows = prod(shape.extents[d] for d in shape.rows)
    single = len(shape.rows) == 1 and len(shape.reduced) == 1 and rows <= FEW_ROWS
    return shape if shape.contiguous and single else None


def is_permuted(found: FusedConsumer, nest: LoopNest) -> bool:
    """Whether a stage writes all of a packed product in another order of its axes.

    The sums of a matrix alone may be cut, and are written from a place of their own.
    """
    right = found.product.reads[found.shape.right].buffer
    if nest.buffer(right).role is not Role.CONSTANT or found.pad is not None:
        return False
    cut = found.end == found.product and len(found.shape.reduced) == 1
    return is_transpose(found.consumer) and not cut


def is_transpose(stage: Statement) -> bool:
    """Whether a stage writes all that it reads, in another order of its axes."""
    if stage.body or stage.is_reduction or stage.inside is not None:
        return False
    if len(stage.reads) != 1 or len(stage.writes) != 1:
        return False
    read, written = stage.reads[0].plain, stage.writes[0].plain
    same = written == stage.names and sorted(map(str, read)) == sorted(stage.names)
    return same and read[-1:] != written[-1:]


def is_reduced(found: FusedConsumer) -> bool:
    """Whether a stage reduces rows of what it reads, each column by itself."""
    stage, written = found.consumer, found.consumer.writes[0].plain
    if not stage.is_reduction or stage.is_contraction or len(stage.writes) > 1:
        return False
    parallel = tuple(a.name for a in stage.axes if not a.is_reduction)
    if not written or written != parallel or found.read.plain[-1:] != written[-1:]:
        return False
    linear = all(not i.other and i.terms for i in found.read.indices)
    forward = all(factor > 0 for i in found.read.indices for _, factor in i.terms)
    every = [axis for i in found.read.indices for axis in i.axes]
    once = len(every) == len({*every}) and {*every} == {*stage.names}
    known = all(isinstance(axis.extent, int) for axis in stage.axes)
    return linear and forward and once and known


def is_followed(nest: LoopNest, found: FusedConsumer) -> bool:
    """Whether all behind a consumer is at its own places, and nothing is behind a
    permutation."""
    begin = nest.stages.index(found.consumer)
    behind = [s for s in nest.stages[begin + 1 :] if s.reads or s.inside is not None]
    if found.is_permutation or found.pad is not None:
        return not behind
    made = {write.buffer for s in (found.consumer, *behind) for write in s.writes}
    for stage in behind:
        own = [*stage.writes, *(read for read in stage.reads if read.buffer in made)]
        if stage.is_reduction or any(access.plain != stage.names for access in own):
            return False
    return True
