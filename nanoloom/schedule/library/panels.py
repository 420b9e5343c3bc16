"""What the schedules of contractions share: panels of the right operand, and tiles."""

from __future__ import annotations

from math import prod

from nanoloom.nest.contraction import Contraction, bits
from nanoloom.nest.extent import Extent
from nanoloom.nest.granularity import FEWEST_TASKS
from nanoloom.nest.loop import How
from nanoloom.nest.nest import Buffer, LoopNest, Role
from nanoloom.nest.statement import Statement
from nanoloom.schedule.families import (
    BIT_PAIRS,
    FAMILIES,
    FEW_ROWS,
    IMAGE_ROWS,
    INT8_INNER,
    Family,
)
from nanoloom.schedule.language import (
    ALL,
    Directive,
    Nanokernel,
    Parallel,
    Prefetch,
    Schedule,
    StoreAt,
    Tile,
)
from nanoloom.schedule.library.fused_lhs_producer import (
    blocks,
    front_vectors,
    is_made,
    stored,
)
from nanoloom.schedule.library.image_rows import with_image_rows
from nanoloom.schedule.library.nanokernels import AHEAD, LINES
from nanoloom.schedule.library.row_block import (
    TILES,
    WOVEN,
    most_rows,
    row_block,
    rows_of_one_panel,
)
from nanoloom.schedule.library.rows_by_panels import rows_by_panels
from nanoloom.schedule.library.schedule_implicit_padding import implicit_padding_of
from nanoloom.schedule.library.task_order import slowest_axis
from nanoloom.schedule.packing import Pack
from nanoloom.target.facts import Target


def other_vectors(
    nest: LoopNest, root: Statement, target: Target
) -> tuple[Directive, ...]:
    """Vectors of what the nanokernel does not take along."""
    return front_vectors(nest, root, target)


def tiled(
    nest: LoopNest,
    root: Statement,
    last: Statement,
    shape: Contraction,
    nanokernel: Nanokernel,
    columns: int,
    target: Target,
) -> tuple[Directive, ...]:
    """Tasks of panels, register tiles inside them.

    What is in front is made once for all panels of a task, of which there are several.
    """
    outer, inner = loop_sizes(root, last, shape, nanokernel, columns, target)
    sizes = outer, inner
    if nanokernel.family == INT8_INNER.name:
        return rows_by_panels(nest, root, last, shape, nanokernel, sizes, target)
    outer, inner = with_image_rows(nest, root, shape, nanokernel, sizes, target)
    tile = any(inner) and not nanokernel.depth
    panels: tuple[Tile, ...] = ()
    row = row_of(shape)
    pad = implicit_padding_of(nest, root, shape, nanokernel, row)
    if pad is not None:
        return (
            StoreAt(pad.name, "source"),
            Parallel(last.name, outer, ALL),
            *([Tile(last.name, inner, ALL)] if tile else []),
            nanokernel,
        )
    if nest.in_front(root.name):
        whole, outer = outer, several_panels(shape, outer)
        if row_of(shape) is not None and is_made(nest, root):
            outer, inner = blocks(shape, nanokernel, sizes, target)
        if outer != whole:
            sizes = (n if d == shape.column else 0 for d, n in enumerate(whole))
            panels = (Tile(last.name, tuple(sizes), ALL),)
    axes = list(range(len(outer)) if root == last else shape.result)
    tasks = dict(zip(axes, outer, strict=True))
    first = slowest_axis(nest, root, shape, tasks, target)
    slowest = None if first is None else axes.index(first)
    return (
        Parallel(last.name, outer, ALL, slowest),
        *stored(nest, root),
        *panels,
        *([Tile(last.name, inner, ALL)] if tile else []),
        nanokernel,
    )


def several_panels(shape: Contraction, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Sizes of tasks with as many panels in each as leave some tasks."""
    column = shape.column
    pairs = zip(sizes, shape.extents, strict=False)
    counts = [-(-extent // size) if size else 1 for size, extent in pairs]
    panels, tasks = counts[column], prod(counts)
    several = max(1, min(panels, tasks // (2 * FEWEST_TASKS)))
    return tuple(n * several if d == column else n for d, n in enumerate(sizes))


def is_parameter(nest: LoopNest, root: Statement, shape: Contraction) -> bool:
    """Whether the right operand can be packed while compiling."""
    name = root.reads[shape.right].buffer
    known = nest.buffer(name).role is Role.CONSTANT
    return known and len(nest.readers(name)) == 1


def is_matrix(shape: Contraction) -> bool:
    """Whether rows and sums have an axis each: the weight of a text, not of images."""
    long = [d for d in shape.rows if shape.extents[d] > 1]
    return len(long) < 2 and len(shape.reduced) == 1 and not shape.shared


def row_of(shape: Contraction) -> int | None:
    """The axis along which a register tile has its rows."""
    long = [d for d in shape.rows if shape.extents[d] > 1]
    return long[-1] if long else None


def row_names(root: Statement, shape: Contraction) -> tuple[str, ...]:
    """The axes of the rows, but those of a single point."""
    return tuple(root.names[d] for d in shape.rows if shape.extents[d] > 1)


def row_bytes(root: Statement, shape: Contraction) -> int:
    """Bytes of a row of the left operand."""
    depth = prod(shape.extents[d] for d in shape.reduced)
    return max(1, depth * bits(root.reads[shape.left].element) // 8)


def column_bytes(root: Statement, shape: Contraction) -> int:
    """Bytes of a column of the right operand."""
    depth = prod(shape.extents[d] for d in shape.reduced)
    return max(1, depth * bits(root.reads[shape.right].element) // 8)


def loop_sizes(
    root: Statement,
    last: Statement,
    shape: Contraction,
    plan: Nanokernel,
    columns: int,
    target: Target,
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Tile sizes of the tasks, and of the register tile inside a task."""
    rows, tiles = plan.rows, FAMILIES[plan.family].tiles
    row = row_of(shape)
    outer: dict[int, int] = dict.fromkeys(shape.result, 1)
    outer[shape.column] = columns
    inner: dict[int, int] = {}
    if row is not None:
        panels = -(-shape.extents[shape.column] // columns)
        limits = (TILES if plan.packed else WOVEN) if tiles else None
        others = [d for d in shape.result if d not in (row, shape.column)]
        weight = panels * columns * column_bytes(root, shape)
        most = most_rows(row_bytes(root, shape), weight, target, limits)
        if panels * prod(shape.extents[d] for d in others) == 1:
            work = prod(shape.extents)
            most = min(most, rows_of_one_panel(shape.extents[row], work))
        if root.axes[row].is_sample:  # tasks are alike as they run (balanced_tasks.py)
            outer[row] = -(-most // rows) * rows
        else:
            block = row_block(shape.extents[row], rows, most)
            outer[row] = 0 if block >= shape.extents[row] else block
        inner[row] = rows
    own = root == last
    return shape.sizes(outer, own=own), shape.sizes(inner, own=own)


def prefetches(
    nest: LoopNest,
    packings: tuple[Pack, ...],
    words: tuple[Directive, ...],
    rows: tuple[str, ...],
    target: Target,
) -> tuple[Prefetch, ...]:
    """Weights come panel by panel, each before it is read.

    words: the loops of the tiles, and their nanokernel.  rows: the axes of the
    rows.  Nothing comes where there is no next panel; nor for the few rows of a
    single tile, or, for one, where the second-level cache may hold the weight already.
    """
    if not packings:
        return ()
    (packing,) = packings
    (plan,) = (word for word in words if isinstance(word, Nanokernel))
    if plan.family == INT8_INNER.name:
        return ()  # lines follow on each other through all panels of a task
    if any(x.is_sample and x.is_reduction for x in nest.stage(plan.stage).axes):
        return ()  # rounds of a sum as long as only a run knows have no shares of lines
    made = Schedule((*packings, *words)).apply(nest)
    (weight,) = (b for b in nest.buffers if b.argument == packing.argument)
    loops = panel_loops(made, words, plan, rows)
    tiles = FAMILIES[plan.family].tiles
    if not tiles and not has_rounds(weight.shape[packing.reduced[-1]], packing, plan):
        return ()
    of_panel = {packing.column: packing.columns, **dict.fromkeys(packing.shared, 1)}
    extents = [(weight.shape[d], size) for d, size in of_panel.items()]
    several = any(isinstance(n, int) and n > size for n, size in extents)
    if loops and (tiles or several):
        return (Prefetch(packing.argument, LINES, loops=loops, level=2),)
    if loops:
        return ()
    if tiles or plan.rows > FEW_ROWS:
        # Lines of a page: the processor itself does not fetch over its end.
        page = target.caches.page // target.caches.line
        return (Prefetch(packing.argument, ahead=page, level=1),)
    size = known_bytes(weight)
    if plan.rows > 1 or size is None or size <= target.caches.l2:
        return ()
    return (Prefetch(packing.argument, ahead=AHEAD, level=2),)


def known_bytes(buffer: Buffer) -> int | None:
    """What a buffer takes; None where only its run says so."""
    extents = [n for n in buffer.shape if isinstance(n, int)]
    if len(extents) != len(buffer.shape):
        return None
    return prod(extents) * bits(buffer.element) // 8


def has_rounds(extent: Extent, packing: Pack, plan: Nanokernel) -> bool:
    """Whether the innermost sum, of so many steps, has a loop to fetch in."""
    return isinstance(extent, int) and extent // packing.group > plan.unroll


def panel_loops(
    made: LoopNest,
    words: tuple[Directive, ...],
    plan: Nanokernel,
    rows: tuple[str, ...],
) -> tuple[str, ...]:
    """The loops over tiles of rows, all of which read one panel.

    A matrix unit goes by itself through the rows of a part of the sum, and through
    those of an image by twos.
    """
    if FAMILIES[plan.family].tiles:
        own = {x.name: x.trips for x in made.placement(plan.stage).loops}
        most = zip(reversed(rows), (plan.rows, IMAGE_ROWS), strict=False)
        trips = ((own.get(name), limit) for name, limit in most)
        several = any(isinstance(n, int) and n > limit for n, limit in trips)
        return (f"{plan.stage}.{rows[-1]}",) if several else ()
    found: list[str] = []
    for stage in dict.fromkeys(word.stage for word in words if isinstance(word, Tile)):
        outer = [x for x in made.placement(stage).loops if x.how is How.SERIAL]
        names = made.stage(stage).names
        blocks = [x for x in outer if x.name not in names and x.trips != 1]
        if blocks and rows:
            found.append(f"{stage}.{blocks[-1].name}")
    return tuple(found)


def weight_packing(
    nest: LoopNest,
    root: Statement,
    shape: Contraction,
    columns: int,
    family: Family,
    sums: int = 0,
    wide: int = 0,
) -> tuple[Pack, ...]:
    """How the right operand is packed, if it is a parameter; wide: bits of integers."""
    if not is_parameter(nest, root, shape):
        return ()
    read = root.reads[shape.right]
    dims = [root.place(axis) for axis in read.plain if axis is not None]
    return (
        Pack(
            nest.buffer(read.buffer).argument,
            tuple(dims.index(d) for d in shape.shared),
            dims.index(shape.column),
            tuple(dims.index(d) for d in shape.reduced),
            columns,
            family.group,
            sums,
            family.steps,
            wide,
            family is BIT_PAIRS,
        ),
    )
