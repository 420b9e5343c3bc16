"""What else a kernel could be made by: tiles, blocks and dataflows near the chosen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from nanoloom.errors import Error
from nanoloom.nest.extent import Extent
from nanoloom.nest.nest import LoopNest
from nanoloom.schedule.choose import choose
from nanoloom.schedule.dataflow.recommended import Recommended
from nanoloom.schedule.language import Nanokernel, Parallel, Schedule, Tile
from nanoloom.schedule.library.decisions import decided_anew
from nanoloom.target.facts import Target

WEIGHED = 5  # forms that the chooser weighed, the cheapest by its prediction
TILES = (8, 32)  # of an axis in a task, where one has all of it


def candidates(nest: LoopNest, target: Target) -> list[Schedule]:
    """Legal schedules of a kernel, each once; the chosen one is the first."""
    chosen = choose(nest, target)
    found = [chosen]
    for made in proposed(chosen, nest, target):
        if made not in found and is_legal(made, nest):
            found.append(made)
    return found


def proposed(chosen: Schedule, nest: LoopNest, target: Target) -> Iterator[Schedule]:
    """Schedules that may be legal."""
    for each in chosen.candidates[:WEIGHED]:
        yield Schedule(each.directives, each.reason)
    yield from other_blocks(chosen, nest, target)
    try:
        yield Recommended().schedule_of(nest, target)
    except Error:
        return  # it is no convolution


def other_blocks(
    chosen: Schedule, nest: LoopNest, target: Target
) -> Iterator[Schedule]:
    """The schedule with one block of a task or a tile of another size."""
    for at, word in enumerate(chosen.directives):
        if not isinstance(word, Parallel | Tile):
            continue
        for place in range(len(word.sizes)):
            for size in other_sizes(chosen, nest, word, place):
                sizes = (*word.sizes[:place], size, *word.sizes[place + 1 :])
                words = list(chosen.directives)
                words[at] = replace(word, sizes=sizes)
                try:
                    made = decided_anew(tuple(words), nest, target)
                except Error:
                    continue  # of a loop that the others do not fit
                yield Schedule(made, f"{word} with {size}")


def other_sizes(
    chosen: Schedule, nest: LoopNest, word: Parallel | Tile, place: int
) -> list[int]:
    """Half and twice as large, or several tiles where a task has all of an axis.

    Multiples of the smallest block of the same axis; that of a nanokernel is its
    register tile, which stays.
    """
    size, most = word.sizes[place], longest(nest, word, place)
    fixed = any(isinstance(other, Nanokernel) for other in chosen.directives)
    smaller = [
        other.sizes[place]
        for other in chosen.directives
        if isinstance(other, Parallel | Tile)
        and other.stage == word.stage
        and len(other.sizes) > place
        and 0 < other.sizes[place] < (size or most)
    ]
    unit = min(smaller, default=0 if fixed else 1)
    if not unit or (not size and (not smaller or isinstance(word, Tile))):
        return []
    wanted = [size // 2, size * 2] if size else [unit * count for count in TILES]
    sizes = (rounded(new, unit) for new in wanted)
    return [new for new in sizes if 0 < new != size and new < most]


def rounded(size: int, unit: int) -> int:
    return -(-size // unit) * unit


def longest(nest: LoopNest, word: Parallel | Tile, place: int) -> int:
    """The extent of the axis that a size is of."""
    stage = next(s for s in nest.stages if s.name == word.stage)
    extent: Extent = stage.axes[place].extent
    return extent if isinstance(extent, int) else 0


def is_legal(schedule: Schedule, nest: LoopNest) -> bool:
    """Whether all of its words fit, as far as the nest tells."""
    try:
        schedule.to_transform(nest)
    except Error:
        return False
    return True
