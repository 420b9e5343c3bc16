"""What reads the results of reductions, in the tasks of the last ones.

    for block of the last stage's points (a task): each part, of what the next one reads

Inside of a task each part is made as it is in a kernel of its own, whose tasks become
loops; around what windows read lies the border, which its producer leaves free.  Tasks
have whole rows (nest/parts.py), or a panel of a product's columns, which register tiles
make (nest/panel_parts.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from nanoloom.nest.contraction import bits, roles
from nanoloom.nest.footprint import Sizes
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.panel_parts import PANEL_VECTORS, PanelParts
from nanoloom.nest.parts import block_sizes, blocks, has_windows, in_block, parts_of
from nanoloom.nest.statement import Axis, Statement
from nanoloom.nest.steps import number
from nanoloom.schedule.language import (
    ALL,
    ComputeAt,
    Directive,
    Directives,
    Nanokernel,
    Parallel,
    Prefetch,
    Schedule,
    StoreAt,
    Tile,
)
from nanoloom.schedule.library.candidates import schedule_of
from nanoloom.schedule.library.contraction import contraction
from nanoloom.schedule.library.panels import row_of
from nanoloom.schedule.packing import Pack
from nanoloom.target.facts import Target

LOOPS = (Parallel, Prefetch, StoreAt)  # of kernels of their own
Choose = Callable[[LoopNest, Target], Schedule]


def fused_parts(
    nest: LoopNest, last: Statement, target: Target, choose: Choose
) -> Schedule:
    """A task for each block of the last stage.

    choose: the schedule of a part as a kernel of its own.
    """
    sizes, parts = blocks(nest), list(parts_of(nest))
    if nest.products:
        parts = [replace(x, stages=in_block(nest, x.stages, sizes)) for x in parts]
    chosen = [inside(part, choose(part, target)) for part in parts]
    inner = [word for words in chosen for word in words]
    in_loops = {word.stage for word in inner if isinstance(word, ComputeAt)}
    pads = [
        StoreAt(pad.name, "padded" if lies_around(nest, pad) else "task")
        for pad in nest.pads
        if pad.name not in in_loops
    ]
    tasks = Parallel(last.name, block_sizes(nest), ALL)
    reason = f"{len(chosen)} parts, each read in the cache of the task that makes it"
    return schedule_of(nest, target, (around([tasks, *pads], inner), reason))


def around(tasks: Sequence[Directive], inner: Sequence[Directive]) -> Directives:
    """Tasks with words inside of them, the packing of weights in front."""
    front = [word for word in inner if isinstance(word, Pack)]
    return (*front, *tasks, *(word for word in inner if word not in front))


def inside(part: LoopNest, schedule: Schedule) -> list[Directive]:
    """The words of a part in a task of another one's: its blocks are loops there, of
    register tiles and of rows."""
    panels = any(isinstance(word, Nanokernel) for word in schedule.directives)
    rows = any(s.is_reduction and not has_windows(s) for s in part.stages)
    found: list[Directive] = []
    for word in schedule.directives:
        loops = panels if isinstance(word, Parallel) else panels or rows
        if loops and isinstance(word, Parallel | Tile):
            made = reversed(part.upstream(word.stage))
            own = tuple(s.name for s in made if s.inside is None)  # borders are stored
            found.append(Tile(word.stage, word.sizes, own))
        elif not isinstance(word, (*LOOPS, Tile)):
            found.append(word)
    return found


def lies_around(nest: LoopNest, pad: Statement) -> bool:
    """Whether a border is around what another stage makes."""
    return pad.inside is not None and nest.writer(pad.inside.buffer) is not None


def fused_panels(found: PanelParts, target: Target, choose: Choose) -> Schedule | None:
    """A task for each block of the last stage, with a panel of columns; None where the
    product has no register tiles."""
    lanes = target.lanes(bits("f32"))
    block = found.blocks(PANEL_VECTORS * lanes, target.caches)
    front = found.front_of(block)
    root, end = (front.stage(stage.name) for stage in (found.product, found.end))
    schedule = contraction(front, root, end, target)
    if schedule is None:
        return None
    made = schedule.directives
    (plan,) = (word for word in made if isinstance(word, Nanokernel))
    packed = [word.columns for word in made if isinstance(word, Pack)]
    (columns,) = packed or (plan.vectors * lanes,)
    wider = {**block, found.column: columns}
    fits = found.fit(wider, target.caches)
    block = wider if fits else found.blocks(columns, target.caches)
    behind = choose(found.behind(block), target).directives
    stored = [word for word in made if isinstance(word, StoreAt)]
    tasks: list[Directive] = [
        *(word for word in stored if word.where != "task"),
        Parallel(found.last.name, sizes_in(found, block), ALL),
        *([StoreAt(found.pad.name, "padded")] if found.pad else []),
        *(word for word in stored if word.where == "task"),
        Tile(found.end.name, tile_of(found, root, plan.rows), ALL),
    ]
    words = [word for word in (*made, *behind) if not isinstance(word, (*LOOPS, Tile))]
    points = " x ".join(str(block[name]) for name in found.names)
    reason = f"tiles of {plan.rows} x {plan.vectors} vectors, read in the cache"
    form = around(tasks, words), f"{reason} by blocks of {points}"
    return schedule_of(found.nest, target, form)


def sizes_in(found: PanelParts, block: Sizes) -> tuple[int, ...]:
    """Of tasks along the last stage's axes, 0 for whole ones; columns are in panels."""

    def size(axis: Axis) -> int:
        here = number(block.get(axis.name, 1))
        is_whole = axis.name != found.column and here == axis.extent
        return 0 if axis.is_reduction or is_whole else here

    return tuple(map(size, found.last.axes))


def tile_of(found: PanelParts, root: Statement, rows: int) -> tuple[int, ...]:
    """Sizes of the register tile along the axes of what is read.

    Its rows run along an axis of which a task, which has `root`, reads several points.
    """
    shape, here = found.shape, roles(root)
    row = None if here is None else row_of(here)
    row = row_of(shape) if row is None else row
    ones = dict.fromkeys((*shape.shared, *shape.rows), 1)
    wanted = ones | ({} if row is None else {row: rows})
    return shape.sizes(wanted, own=found.product == found.end)
