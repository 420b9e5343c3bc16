"""Factors that are known while compiling (ir/known_factors.py), at a tile's points.

A step of a sum that is written out multiplies by a number in the code, by which LLVM
sees what is an addition.  There is no step that multiplies by zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from nanoloom.ir.access import constant_of

if TYPE_CHECKING:
    from nanoloom.vector.register_tile import RegisterTile
    from nanoloom.vector.tile_points import Point

Factors: TypeAlias = np.ndarray | None


def factor_at(strip: RegisterTile, point: Point) -> float | None:
    """The number of the first input at a point, None if it is not known which."""
    if strip.factors is None:
        return None
    at = [constant_of(i) for i in strip.inputs[0].indices(point.ivs)]
    known = tuple(place for place in at if place is not None)
    return float(strip.factors[known]) if len(known) == len(at) else None


def no_term(strip: RegisterTile, point: Point) -> bool:
    """Whether a sum has nothing at a point."""
    return factor_at(strip, point) == 0
