"""A stage whose points are ordered by what stays in registers ("nanoloom.stationary").

Loops over all other dimensions are around its block of code; its vectors' is the
innermost of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from nanoloom.errors import Error
from nanoloom.ir.access import constant_of, index
from nanoloom.ir.mlir import ir
from nanoloom.vector.stationary import operand_stationary, output_stationary
from nanoloom.vector.stationary.held_operands import HeldOperands, window_of
from nanoloom.vector.vector_plan import ResidentOperands

if TYPE_CHECKING:
    from nanoloom.vector.vectorize_loops import Loops


def emit(loops: Loops, stays: ResidentOperands) -> None:
    """All of a stage."""
    inside = {*stays.points, *stays.sums}
    around = [dim for dim in loops.order if dim not in {*inside, loops.dim}]
    ivs = [index(0) for _ in loops.kinds]

    def block(here: Loops, at: Sequence[ir.Value]) -> None:
        found = [constant_of(here.extent(dim)) for dim in stays.sums]
        extents = [extent for extent in found if extent is not None]
        if len(extents) < len(found):
            raise Error(f"axes {list(stays.sums)} are written out: numbers are wanted")
        kept = {**dict(stays.resident), stays.anchor: 1}
        held = HeldOperands(here, window_of(here, stays), kept, stays.unroll)
        form = operand_stationary if held.window.stays_still else output_stationary
        form.run(held, at, extents)

    replace(loops, jam={}).nest([*around, loops.dim], ivs, block)


def begins_once(loops: Loops, stays: ResidentOperands) -> bool:
    """Whether each result is begun once, by a number as well as by memory."""
    others = [dim for dim in loops.reduced if dim not in stays.sums]
    once = all(constant_of(loops.extent(dim)) == 1 for dim in others)
    across = loops.kinds[loops.dim] == "reduction"  # lanes are added to what lies there
    return once and not across and stays.anchor == len(loops.inputs)
