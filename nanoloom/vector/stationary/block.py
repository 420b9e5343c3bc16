"""A stage whose points are ordered by what stays in registers ("nanoloom.stationary").

Loops over all other dimensions are around its block of code; its vectors' is the
innermost of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from nanoloom.errors import Error
from nanoloom.mlir import ir
from nanoloom.vector.access import constant_of, index
from nanoloom.vector.stationary import moving, still
from nanoloom.vector.stationary.held import Held, window_of
from nanoloom.vector.vectorize import Stays

if TYPE_CHECKING:
    from nanoloom.vector.loops import Loops


def emit(loops: Loops, stays: Stays) -> None:
    """All of a stage."""
    inside = {*stays.points, *stays.sums}
    around = [dim for dim in loops.order if dim not in {*inside, loops.dim}]
    ivs = [index(0) for _ in loops.kinds]

    def block(here: Loops, at: Sequence[ir.Value]) -> None:
        found = [constant_of(here.extent(dim)) for dim in stays.sums]
        extents = [extent for extent in found if extent is not None]
        if len(extents) < len(found):
            raise Error(f"axes {list(stays.sums)} are written out: numbers are wanted")
        kept = {**dict(stays.kept), stays.anchor: 1}
        held = Held(here, window_of(here, stays), kept, stays.turns)
        form = still if held.window.stays_still else moving
        form.run(held, at, extents)

    replace(loops, jam={}).nest([*around, loops.dim], ivs, block)


def begins_once(loops: Loops, stays: Stays) -> bool:
    """Whether each result is begun once, by a number as well as by memory."""
    others = [dim for dim in loops.reduced if dim not in stays.sums]
    once = all(constant_of(loops.extent(dim)) == 1 for dim in others)
    across = loops.kinds[loops.dim] == "reduction"  # lanes are added to what lies there
    return once and not across and stays.anchor == len(loops.inputs)
