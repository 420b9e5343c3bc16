"""The vector stage: a kernel's schedule is applied, and everything becomes vectors.

In:  a marked kernel on tensors and its Transform script.
Out: phases on buffers, only loops, vectors and scalars in them.
"""

from __future__ import annotations

from dataclasses import dataclass

from nanoloom.ir.mlir import function_named, ir
from nanoloom.schedule.packing import Pack
from nanoloom.target.facts import Target
from nanoloom.vector.directives import Directives, tile
from nanoloom.vector.dynamic_scratch import rooms_of
from nanoloom.vector.passes import PASSES, Work
from nanoloom.vector.scratch_memory import scratch_bytes
from nanoloom.vector.tasks import COUNTED


@dataclass(frozen=True)
class Vectorized:
    """What a script made of a kernel.

    phases: their names and numbers of tasks, COUNTED where sizes decide; so is what is
    in scratch_bytes.  packings: of the kernel's weights.
    scratch_bytes: memory that each phase's temporaries take, in each thread.
    arena_bytes: of each tensor between phases, an argument behind the results.
    """

    phases: tuple[tuple[str, int], ...]
    packings: tuple[Pack, ...]
    scratch_bytes: tuple[int, ...]
    arena_bytes: tuple[int, ...] = ()


def vectorize(
    module: ir.Module, script: str, target: Target, *, strict: bool = False
) -> Vectorized:
    """Apply a schedule.

    strict: of a user's, who learns of vectors that there cannot be.  Raises Error, with
    the script's line, where a step does not parse, apply or fit.
    """
    work = Work(module, target, Directives(target), strict)
    tile(module, script, work.said)
    for each in PASSES:
        each.run(work)
    module.operation.verify()
    scratch = tuple(
        COUNTED if rooms_of(function_named(module, name)) else bytes_
        for (name, _), bytes_ in zip(
            work.phases, scratch_bytes(module, work.phases), strict=True
        )
    )
    packings = tuple(work.said.packings)
    return Vectorized(tuple(work.phases), packings, scratch, work.arena_bytes)
