"""Windows over channels-last tensors: depthwise convolutions and pools.

    for task (rows of pixels):
        for block of pixels, vector of channels:
            for tap of the window: for pixel of some side by side:
                sums[pixel] += x[pixel * stride + tap] * w[tap]

Some pixels side by side share the vectors of weights, and much of what their windows
read; their sums are as many independent chains.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from nanoloom.nest.contraction import bits
from nanoloom.nest.extent import Lanes
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.stage import Stage
from nanoloom.schedule.language import (
    ALL,
    ComputeAt,
    Directive,
    Parallel,
    Schedule,
    StoreAt,
    Unroll,
    UnrollAndJam,
)
from nanoloom.schedule.library.finished import (
    is_finished,
    lanes_at_tile,
    on_tile,
    points,
)
from nanoloom.schedule.library.rows import TASK_ELEMENTS, numbers
from nanoloom.schedule.library.vector_axis import axis_of, slides
from nanoloom.schedule.library.vectors import vectors
from nanoloom.schedule.library.weighed import Form, schedule_of
from nanoloom.target.facts import Target
from nanoloom.target.masks import has_masked_loads

PADDED = 4  # times as much for a task that pads what it reads: edges are made twice
FEWEST_TASKS = 8  # that larger ones leave
ROWS = 2  # of pixels at once: they share all but one of the rows that they read
POINTS = 16  # pixels at once, at most: chains enough for any multiply-add
MOST_TAPS = 64  # of a window that is unrolled whole


@dataclass(frozen=True)
class Window:
    """A reduction whose vectors run along a parallel axis.

    stage: it.  pixels: the axis beside the vectors'.  in_planes: vectors are of pixels,
    which slide, and the axis in front is of channels, which share nothing.
    """

    stage: Stage
    pixels: int
    in_planes: bool = False


@dataclass(frozen=True)
class Block:
    """Pixels that are computed at once."""

    rows: int
    pixels: int

    def __str__(self) -> str:
        return f"{self.rows} x {self.pixels}"


def windows(nest: LoopNest, last: Stage, target: Target) -> Schedule | None:
    """Rows of pixels as tasks, some pixels at once; None for other kernels."""
    window = window_of(nest, last, target)
    if window is None:
        return None
    best, *others = blocks(window, target)
    masked = reads_under_masks(nest, window, target)
    pads = [pad.name for pad in nest.pads]

    def form(block: Block) -> Form:
        stage, lanes = window.stage, lanes_at_tile(nest, window.stage, target)
        made = tiles(nest, last, window, block, target)
        directives = (
            Parallel(last.name, tasks(nest, last, window, block), ALL),
            *(StoreAt(pad.name, "task") for pad in nest.pads if not masked),
            *(word for word in made if not masked or word.stage not in pads),
            *(Unroll(stage.name, stage.names[axis]) for axis in unrolled(stage)),
            *(
                word
                for pad in nest.pads
                if masked
                for word in at_taps(pad, window, block, lanes)
            ),
        )
        return directives, f"windows of {block} pixels at once share what they read"

    return schedule_of(nest, target, form(best), map(form, others))


def reads_under_masks(nest: LoopNest, window: Window, target: Target) -> bool:
    """Whether what a border is around is read where it lies, in vectors along rows."""
    taps = window.in_planes and len(unrolled(window.stage)) > 0
    read = [x for pad in nest.pads for x in pad.writes]
    return taps and all(has_masked_loads(target, bits(x.element) // 8) for x in read)


def at_taps(
    pad: Stage, window: Window, block: Block, lanes: Lanes
) -> tuple[Directive, ...]:
    """A border that is made of the loads of each tap of a window.

    Its vectors are of all that lies between the first and the last of the lanes.
    """
    stage, rows = window.stage, len(pad.axes) - 2
    place = ComputeAt(pad.name, stage.name, stage.names[-1])
    (read,) = (x for x in stage.reads if x.buffer == pad.writes[0].buffer)
    down, along = (
        index.factor(stage.names[axis]) or 1
        for index, axis in zip(
            read.indices[-2:], (window.pixels, window.pixels + 1), strict=True
        )
    )
    high = down * (block.pixels - 1) + 1
    return (place, *points(pad, Lanes(along * lanes.count), {rows: high}))


def tasks(nest: LoopNest, last: Stage, window: Window, block: Block) -> tuple[int, ...]:
    """Blocks of rows, enough of them for a task; whole along pixels and vectors."""
    pixels, sizes = window.pixels, numbers(window.stage)
    found = [1] * pixels + [0] * (len(last.axes) - pixels)
    if pixels:
        wanted = TASK_ELEMENTS // prod(sizes[pixels : pixels + 2])
        if nest.pads:
            most = max(wanted, sizes[pixels - 1] // FEWEST_TASKS)
            wanted = min(most, wanted * PADDED)
        rows = max(1, wanted // block.rows) * block.rows
        found[pixels - 1] = min(sizes[pixels - 1], rows)
    return tuple(found)


def tiles(
    nest: LoopNest, last: Stage, window: Window, block: Block, target: Target
) -> tuple[Directive, ...]:
    """Some pixels at once, with all that follows where it is at the same places."""
    stage, pixels = window.stage, window.pixels
    rows = {pixels - 1: block.rows} if block.rows > 1 else {}
    jam = {**rows, pixels: block.pixels}
    if is_finished(nest, stage) and not has_functions(nest, stage):
        lanes = lanes_at_tile(nest, stage, target)
        return on_tile(nest, stage, last, lanes, jam)
    words = (UnrollAndJam(stage.name, stage.names[p], n) for p, n in jam.items())
    return (*vectors(nest.stages, target), *words)


def window_of(nest: LoopNest, last: Stage, target: Target) -> Window | None:
    """The only reduction of a kernel, if its results are vectors in rows of rows."""
    working = [stage for stage in nest.stages if stage.reads]
    reductions = [stage for stage in working if stage.is_reduction]
    if len(reductions) != 1 or 0 in numbers(last):
        return None
    (stage,) = reductions
    parallel = stage.leading_parallel()
    written = stage.writes[0].plain
    if parallel < 3 or len(stage.writes) > 1 or written != stage.names[:parallel]:
        return None
    if axis_of(stage, target) != parallel - 1 or len(last.axes) < parallel:
        return None
    along = written[-1] or ""
    in_planes = any(slides(x, along) for x in stage.reads)
    if working[0] != stage or not all(
        x.lies_along(along) or (in_planes and slides(x, along)) for x in stage.reads
    ):
        return None
    follows = all(s.extents == stage.extents[:parallel] for s in working[1:])
    return Window(stage, parallel - 2, in_planes) if follows else None


def blocks(window: Window, target: Target) -> list[Block]:
    """Pixels at once, the best first.

    Two rows of them, which read most of the same rows; a part of a row if there is one,
    then as many as registers allow.  Each place that scalable vectors are read from
    takes a register for its address: fewer of them.
    """
    sizes, pixels = numbers(window.stage), window.pixels
    unit = target.vector
    room = min(POINTS, unit.registers // (4 if unit.scalable else 2))
    high = sizes[pixels - 1] if pixels else 1
    found: list[Block] = []
    for rows in (1,) if window.in_planes else (min(ROWS, high), 1):
        most = min(room // rows, sizes[pixels])
        widths = range(most, most // 2, -1)
        even = sorted(widths, key=lambda n: (sizes[pixels] % n > 0, -n))
        found += [Block(rows, n) for n in even]
    return list(dict.fromkeys(found))


def unrolled(stage: Stage) -> tuple[int, ...]:
    """The innermost axes of the window that are few enough taps."""
    found: list[int] = []
    taps = 1
    for place in range(len(stage.axes) - 1, -1, -1):
        extent = stage.axes[place].extent
        if not stage.axes[place].is_reduction or not isinstance(extent, int):
            break
        taps *= extent
        if taps > MOST_TAPS:
            break
        found.append(place)
    return tuple(reversed(found))


def has_functions(nest: LoopNest, sums: Stage) -> bool:
    """Whether an exp or its kin follows the sums: it has numbers enough of its own to
    hold in registers, and is faster in a loop over the task's memory."""
    following = nest.stages[nest.stages.index(sums) + 1 :]
    return any(name.startswith("math.") for stage in following for name in stage.body)
