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
from nanoloom.nest.granularity import (
    FEWEST_TASKS,
    JAMMED,
    MOST_WRITTEN,
    TASK_ELEMENTS,
    sums_in_registers,
)
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.statement import Statement
from nanoloom.nest.task_sizes import PADDED, numbers
from nanoloom.schedule.inner_loops import FURTHEST
from nanoloom.schedule.language import (
    ALL,
    ComputeAt,
    Directive,
    Parallel,
    Reorder,
    Schedule,
    StoreAt,
    Unroll,
    UnrollAndJam,
    Vectorize,
)
from nanoloom.schedule.library.candidates import Form, schedule_of
from nanoloom.schedule.library.finish_at_tile import (
    at_tile,
    is_finished,
    lanes_at_tile,
    points,
)
from nanoloom.schedule.library.product_form import form_of
from nanoloom.schedule.library.vectors import lanes_of, vectors
from nanoloom.schedule.library.window import Window, unrolled, window_of
from nanoloom.target.facts import LANE_BITS, Target
from nanoloom.target.masked_access import has_masked_loads, reads_rows_in_part

ROWS = 2  # of pixels at once: they share all but one of the rows that they read
# Pixels at once, at most: chains enough for any multiply-add.
POINTS = JAMMED * JAMMED
# Rows of a whole plane at once: which of them are border is known, and
# what follows writes each once it is whole, so that few registers hold them.


@dataclass(frozen=True)
class Block:
    """Pixels that are computed at once."""

    rows: int
    pixels: int

    def __str__(self) -> str:
        return f"{self.rows} x {self.pixels}"


def windows(nest: LoopNest, last: Statement, target: Target) -> Schedule | None:
    """Rows of pixels as tasks, some pixels at once; None for other kernels."""
    window = window_of(nest, last, target)
    if window is None:
        return None
    following = window.stage != last and stays_at_tile(nest, window.stage)
    best, *others = blocks(window, target, following)
    masked = reads_under_masks(nest, window, target)
    pads = [pad.name for pad in nest.pads]

    def form(block: Block) -> Form:
        stage, lanes = window.stage, lanes_at(nest, window, target)
        made = in_order(tiles(nest, last, window, block, target), window)
        directives = (
            Parallel(last.name, tasks(nest, last, window, block), ALL),
            *(StoreAt(pad.name, "task") for pad in nest.pads if not masked),
            *(word for word in made if word.stage not in pads),
            *(() if masked else vectors(nest.pads, target)),
            *(Unroll(stage.name, stage.names[axis]) for axis in unrolled(window)),
            *(
                word
                for pad in nest.pads
                if masked
                for word in at_taps(pad, window, block, lanes)
            ),
        )
        return directives, f"windows of {block} pixels at once share what they read"

    return schedule_of(nest, target, form(best), map(form, others))


def in_planes(nest: LoopNest, last: Statement, target: Target) -> bool:
    """Whether a dense layer of few channels has windows that go along rows of planes,
    which are read under masks."""
    window = window_of(nest, last, target)
    if window is None or not window.shares:
        return False
    terms = prod(
        size
        for size, axis in zip(numbers(window.stage), window.stage.axes, strict=True)
        if axis.is_reduction
    )
    return reads_rows_in_part(target) and terms <= MOST_WRITTEN


def down_planes(nest: LoopNest, last: Statement, target: Target) -> bool:
    """Whether windows go from row to row of planes, and rows, which share what they
    read, are short.

    Depthwise 5x1 on rows of 7 pixels took 4.6 times as long with a row at a time, 3x1
    on 112 pixels 0.7.
    """
    window, form = window_of(nest, last, target), form_of(nest, last)
    if window is None or window.in_planes or form is None or form.row:
        return False
    row, lanes = numbers(window.stage)[window.pixels + 1], lanes_of(last, target)
    return row <= JAMMED * lanes


def reads_under_masks(nest: LoopNest, window: Window, target: Target) -> bool:
    """Whether what a border is around is read where it lies, in vectors along rows.

    Of windows with many taps in a loop each reads it again: a task makes it once, and
    11x3x3 filters of volumes took 0.65 of the time.
    """
    sums = [axis for axis in window.stage.axes if axis.is_reduction]
    few = window.shares or len(unrolled(window)) == len(sums)
    taps = window.in_planes and few and 0 < window.step <= FURTHEST
    read = [x for pad in nest.pads for x in pad.writes]
    return taps and all(has_masked_loads(target, bits(x.element) // 8) for x in read)


def at_taps(
    pad: Statement, window: Window, block: Block, lanes: Lanes
) -> tuple[Directive, ...]:
    """A border that is made of the loads of each tap of a window.

    Its vectors are of all that lies between the first and the last of the lanes.
    """
    stage, rows = window.stage, len(pad.axes) - 2
    place = ComputeAt(pad.name, stage.name, stage.names[unrolled(window)[-1]])
    (read,) = (x for x in stage.reads if x.buffer == pad.writes[0].buffer)
    down = read.indices[-2].factor(stage.names[window.pixels]) or 1
    high = down * (block.pixels - 1) + 1
    return (place, *points(pad, Lanes(window.step * lanes.count), {rows: high}))


def tasks(
    nest: LoopNest, last: Statement, window: Window, block: Block
) -> tuple[int, ...]:
    """Blocks of rows, enough of them for a task; whole along pixels and vectors.

    Of a single plane, which has no axis in front, blocks of its pixels.
    """
    pixels, sizes = window.pixels, numbers(window.stage)
    found = [1] * pixels + [0] * (len(last.axes) - pixels)
    place, high = (pixels - 1, block.rows) if pixels else (0, block.pixels)
    wanted = TASK_ELEMENTS // prod(sizes[place + 1 : pixels + 2])
    if nest.pads:
        most = max(wanted, sizes[place] // FEWEST_TASKS)
        wanted = min(most, wanted * PADDED)
    found[place] = min(sizes[place], max(1, wanted // high) * high)
    return tuple(found)


def tiles(
    nest: LoopNest, last: Statement, window: Window, block: Block, target: Target
) -> tuple[Directive, ...]:
    """Some pixels at once, with all that follows where it is at the same places."""
    stage, pixels = window.stage, window.pixels
    rows = {pixels - 1: block.rows} if block.rows > 1 else {}
    jam = {**rows, pixels: block.pixels}
    if stays_at_tile(nest, stage):
        return at_tile(nest, stage, last, lanes_at(nest, window, target), jam)
    if window.in_planes:
        others = [each for each in nest.stages if each != stage]
        here = points(stage, lanes_at(nest, window, target), jam)
        return (*vectors(others, target), *here)
    words = (UnrollAndJam(stage.name, stage.names[p], n) for p, n in jam.items())
    return (*vectors(nest.stages, target), *words)


def lanes_at(nest: LoopNest, window: Window, target: Target) -> Lanes:
    """Of vectors at a tile: half a register, or less, for rows of planes that fit.

    Loads of a whole one mostly lie in two lines of the cache, which takes twice as
    long.
    """
    whole = lanes_at_tile(nest, window.stage, target)
    extent, count = numbers(window.stage)[window.pixels + 1], whole.count
    while window.in_planes and extent * 2 <= count and count > LANE_BITS // bits("f32"):
        count //= 2
    return lanes_at_tile(nest, window.stage, target, count)


def blocks(window: Window, target: Target, following: bool) -> list[Block]:
    """Pixels at once, the best first.

    Two rows of them, which read most of the same rows; a part of a row if there is one,
    then as many as registers allow.  Each place that scalable vectors are read from
    takes a register for its address: fewer of them.  Rows of planes of any size go by
    half as many, as what is left goes one by one.  Where each reads numbers of its own,
    no more than are to be written out.  following: whether other stages are
    computed at the tile.
    """
    sizes, pixels = numbers(window.stage), window.pixels
    unit = target.vector
    room = min(POINTS, unit.registers // (4 if unit.scalable else 2))
    high = sizes[pixels - 1] if pixels else 1
    found: list[Block] = []
    if window.shares:
        room = sums_in_registers(unit.registers)
        rows = min(JAMMED * window.step, sizes[pixels - 1])
        most = min(room // rows, sizes[pixels])
        return [Block(rows, n) for n in range(most, max(0, most - 3), -1)]
    is_open = window.in_planes and window.stage.axes[pixels].is_sample
    room = room // 2 if is_open else room
    if not window.overlaps:
        room = max(1, min(room, MOST_WRITTEN // written_taps(window)))
    for rows in (1,) if window.in_planes else (min(ROWS, high), 1):
        most = min(room // rows, sizes[pixels])
        if following and room == POINTS and is_plane(window):
            most = sizes[pixels]
        widths = range(most, most // 2, -1)
        left = {n: sizes[pixels] % n > 0 and not is_open for n in widths}
        even = sorted(widths, key=lambda n: (left[n], -n))
        found += [Block(rows, n) for n in even]
    return list(dict.fromkeys(found))


def written_taps(window: Window) -> int:
    """How many taps are written out for each pixel."""
    sizes = numbers(window.stage)
    return prod(sizes[axis] for axis in unrolled(window))


def is_plane(window: Window) -> bool:
    """Whether a plane is so small that all of its rows are computed at once."""
    rows, _, *taps = numbers(window.stage)[window.pixels :]
    return window.in_planes and rows * prod(taps) <= MOST_WRITTEN


def in_order(words: tuple[Directive, ...], window: Window) -> tuple[Directive, ...]:
    """The taps along a row innermost, of a dense layer in planes: what is at hand of a
    row is as much as registers hold."""
    stage = window.stage
    if not window.shares:
        return words
    tap = stage.names[window.tap]
    order = *(name for name in stage.names if name != tap), tap
    at = next(
        n
        for n, x in enumerate(words)
        if isinstance(x, Vectorize) and x.stage == stage.name
    )
    return (*words[:at], Reorder(stage.name, order), *words[at:])


def stays_at_tile(nest: LoopNest, sums: Statement) -> bool:
    """Whether what follows a sum is computed on its register tile."""
    return is_finished(nest, sums) and not has_functions(nest, sums)


def has_functions(nest: LoopNest, sums: Statement) -> bool:
    """Whether an exp or its kin follows the sums: it is faster in a loop over the
    task's memory."""
    return any(x.has_functions for x in nest.stages[nest.stages.index(sums) + 1 :])
