"""What reads the results of reductions, in the tasks of the last ones (nest/parts.py).

Inside of a task each part is made as it is in a kernel of its own, whose tasks become
loops; around what windows read lies the border, which its producer leaves free.
"""

from __future__ import annotations

from collections.abc import Callable

from nanoloom.nest.nest import LoopNest
from nanoloom.nest.parts import block_sizes, has_windows, in_block, parts_of
from nanoloom.nest.statement import Statement
from nanoloom.schedule.language import (
    ALL,
    ComputeAt,
    Directive,
    Nanokernel,
    Parallel,
    Prefetch,
    Schedule,
    StoreAt,
    Tile,
)
from nanoloom.schedule.library.candidates import schedule_of
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
    parts = [in_block(nest, x) if nest.products else x for x in parts_of(nest)]
    chosen = [inside(part, choose(part, target)) for part in parts]
    inner = [word for words in chosen for word in words]
    in_loops = {word.stage for word in inner if isinstance(word, ComputeAt)}
    front = [word for word in inner if isinstance(word, Pack)]
    words: tuple[Directive, ...] = (
        *front,
        Parallel(last.name, block_sizes(nest), ALL),
        *(
            StoreAt(pad.name, "padded" if lies_around(nest, pad) else "task")
            for pad in nest.pads
            if pad.name not in in_loops
        ),
        *(word for word in inner if word not in front),
    )
    reason = f"{len(chosen)} parts, each read in the cache of the task that makes it"
    return schedule_of(nest, target, (words, reason))


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
