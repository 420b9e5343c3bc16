"""Pools whose windows overlap, of an image that a product makes.

t[y, x, f] = product, with what follows it at the same places
p[y, x, f] = max of t[s y + i - low, s x + j - low, f], another number around t

A task makes some rows of the pool, of the rows of t that they read: k - s of these are
made by two tasks each.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from nanoloom.nest.contraction import Contraction, of_rows
from nanoloom.nest.nest import LoopNest, Role
from nanoloom.nest.statement import Statement
from nanoloom.target.facts import Target

AROUND = "its source, with a border"  # where a pad lies that is written around that
BYTES = 4  # of an f32 number
FEWEST_TASKS = 8  # for any number of threads: blocks of rows, panels of columns
SHARE = 0.5  # of the second-level cache, for a task's part of the image
VECTORS = 2  # of columns in a panel, about, before its register tile is chosen
# Cycles of a line on its way out of the cache and back, as measured on AVX-512 beside
# 147 products a number: the image behind ResNet's first layer.
MOVED, LINE_BITS = 6.0, 512


@dataclass(frozen=True)
class OverlappingPool:
    """A product, what follows it at the same places up to `end`, and the pool of that.

    pad: a border around `end` that the pool reads, None for none.
    """

    product: Statement
    end: Statement
    pad: Statement | None
    pool: Statement
    shape: Contraction


@dataclass(frozen=True)
class RowWindow:
    """The windows of a pool along the rows of an image.

    rows: of the pool.  step, reach: of windows, in rows of the image.
    """

    rows: int
    step: int
    reach: int

    @property
    def again(self) -> int:
        """Rows of the image that two blocks of the pool's rows read."""
        return max(0, self.reach - self.step)

    def read(self, rows: int) -> int:
        """Rows of the image that so many rows of the pool read."""
        return (rows - 1) * self.step + self.reach


def is_overlapping_pool(pool: Statement) -> bool:
    """Whether a stage reduces windows of an image, along rows and columns of pixels.

    Vectors lie along the channels, which are last.
    """
    if not pool.is_reduction or pool.is_contraction or not pool.reads:
        return False
    written, parallel = pool.writes[0].plain, pool.leading_parallel()
    indices = pool.reads[0].indices
    if len(pool.writes) > 1 or parallel < 3 or len(indices) != parallel:
        return False
    if written != pool.names[:parallel] or indices[-1].axis != written[-1]:
        return False
    images = zip(written, indices[:-3], strict=False)
    if any(index.axis != name for name, index in images):
        return False
    return all(row_window_of(pool, place) is not None for place in (-3, -2))


def row_window_of(pool: Statement, place: int = -3) -> RowWindow | None:
    """The windows along a dimension of what a pool reads, None if there are none."""
    index = pool.reads[0].indices[place]
    name = pool.names[pool.leading_parallel() + place]
    if index.other or index.offset or len(index.terms) != 2:
        return None
    steps = dict(index.terms)
    (tap,) = [axis for axis in steps if axis != name] or [""]
    if name not in steps or not tap or steps[name] < 1 or steps[tap] < 1:
        return None
    rows, taps = (pool.axes[pool.place(axis)].extent for axis in (name, tap))
    if not isinstance(rows, int) or not isinstance(taps, int):
        return None
    return RowWindow(rows, steps[name], steps[tap] * (taps - 1) + 1)


def makes_image(product: Statement) -> Contraction | None:
    """The roles of the axes of a product of f32 whose rows are those of an image.

    Of windows: without them all pixels are one axis (kernels/coalesce_loops.py).
    """
    shape = of_rows(product)
    if shape is None or shape.shared or len(shape.reduced) < 2:
        return None
    if len(shape.result) < 3 or shape.rows != shape.result[:-1]:
        return None
    return None if None in product.reads[shape.right].plain else shape


def pays(shape: Contraction, pool: Statement, target: Target) -> bool:
    """Whether what is computed twice takes no longer than what goes through memory."""
    down, unit = row_window_of(pool), target.vector
    assert down is not None, "a pool of windows"
    *_, high, wide = (shape.extents[d] for d in shape.rows)
    columns, panel = shape.extents[shape.column], VECTORS * unit.bits // 8 // BYTES
    rows = rows_of_task(shape, down, panel, target)
    if down.read(rows) * wide * panel * BYTES > SHARE * target.caches.l2:
        return False
    depth = prod(shape.extents[d] for d in shape.reduced)
    blocks = -(-down.rows // rows)
    again = (blocks - 1) * down.again / high * depth / unit.fma_per_cycle
    outweighs = high * wide * columns * BYTES > target.caches.l2
    return outweighs and again < MOVED * unit.bits / LINE_BITS


def rows_of_task(
    shape: Contraction, down: RowWindow, panel: int, target: Target
) -> int:
    """How many rows of a pool a task makes, all tasks alike; panel: its columns.

    As many as leave tasks for any number of threads, and stay in the cache.
    """
    *images, _, wide = (shape.extents[d] for d in shape.rows)
    cached = int(SHARE * target.caches.l2) // (wide * panel * BYTES)
    tasks = prod(images) * -(-shape.extents[shape.column] // panel)
    most = -(-down.rows // -(-FEWEST_TASKS // tasks))
    rows = next((n for n in range(most, 1, -1) if down.read(n) <= cached), 1)
    return -(-down.rows // -(-down.rows // rows))


def overlapping_pool(nest: LoopNest) -> OverlappingPool | None:
    """The parts of a nest that is a product with a parameter, and a pool of it."""
    pool = nest.last
    if len(nest.products) != 1 or pool is None or not is_overlapping_pool(pool):
        return None
    (product,), made = nest.products, nest.writer(pool.reads[0].buffer)
    pad = made if made is not None and made.inside is not None else None
    end = nest.writer(pad.inside.buffer) if pad and pad.inside else made
    shape = makes_image(product)
    if end is None or shape is None:
        return None
    weights = nest.buffer(product.reads[shape.right].buffer)
    if weights.role is not Role.CONSTANT:
        return None
    return OverlappingPool(product, end, pad, pool, shape)


def is_padding(nest: LoopNest, stage: Statement) -> bool:
    """Whether a schedule writes a border around what makes its inside."""
    return nest.placement(stage.name).stored == AROUND
