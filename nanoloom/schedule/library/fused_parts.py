"""Windows that read others' windows, in the tasks of the last ones (nest/parts.py).

Inside of a task each part is made as it is in a kernel of its own; around what windows
read lies the border, which its producer leaves free.
"""

from __future__ import annotations

from collections.abc import Callable

from nanoloom.nest.nest import LoopNest
from nanoloom.nest.parts import block_sizes, parts_of
from nanoloom.nest.statement import Statement
from nanoloom.schedule.language import (
    ALL,
    ComputeAt,
    Directive,
    Parallel,
    Prefetch,
    Schedule,
    StoreAt,
    Tile,
)
from nanoloom.schedule.library.candidates import schedule_of
from nanoloom.target.facts import Target

LOOPS = (Parallel, Tile, Prefetch, StoreAt)  # of kernels of their own
Choose = Callable[[LoopNest, Target], Schedule]


def fused_parts(
    nest: LoopNest, last: Statement, target: Target, choose: Choose
) -> Schedule:
    """A task for each block of the last stage.

    choose: the schedule of a part as a kernel of its own.
    """
    chosen = [choose(part, target).directives for part in parts_of(nest)]
    inner = [word for words in chosen for word in words if not isinstance(word, LOOPS)]
    in_loops = {word.stage for word in inner if isinstance(word, ComputeAt)}
    words: tuple[Directive, ...] = (
        Parallel(last.name, block_sizes(nest), ALL),
        *(
            StoreAt(pad.name, "padded" if lies_around(nest, pad) else "task")
            for pad in nest.pads
            if pad.name not in in_loops
        ),
        *inner,
    )
    reason = f"{len(chosen)} parts, each read in the cache of the task that makes it"
    return schedule_of(nest, target, (words, reason))


def lies_around(nest: LoopNest, pad: Statement) -> bool:
    """Whether a border is around what another stage makes."""
    return pad.inside is not None and nest.writer(pad.inside.buffer) is not None
