"""Borders of images that a nanokernel leaves out of its sums (nest/left_out.py).

A tile at an end of an image's row has code of its own.
"""

from __future__ import annotations

from nanoloom.nest.contraction import Contraction
from nanoloom.nest.left_out import left_out, tiles_at_ends
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.stage import Stage
from nanoloom.schedule.families import FMA_FAMILY
from nanoloom.schedule.language import Nanokernel

MOST_ENDS = 4  # tiles of a row in which rows ask where they are


def left_out_by(
    nest: LoopNest,
    root: Stage,
    shape: Contraction,
    plan: Nanokernel,
    row: int | None,
) -> Stage | None:
    """The pad whose border a nanokernel leaves out, None if it cannot or should not.

    row: the axis of the tile's rows.  Where most tiles are at ends, and all of their
    rows ask, a task makes the border.
    """
    pad = left_out(nest, root)
    plain = plan.packed and plan.family == FMA_FAMILY.name and not plan.widened
    if pad is None or not plain or nest.in_front(root.name) != (pad,):
        return None
    if row is None:
        return pad
    ends = tiles_at_ends(nest, root, root.names[row], plan.rows)
    return pad if ends <= MOST_ENDS else None
