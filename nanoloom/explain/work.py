"""What a kernel computes and moves, counted from its loops.

Each operation at each point, each number read or written once.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from nanoloom.nest.contraction import bits
from nanoloom.nest.nest import LoopNest, Role
from nanoloom.nest.statement import Statement

PASSED_ON = (Role.INPUT, Role.CONSTANT, Role.RESULT)


def counted(nest: LoopNest) -> tuple[int, int]:
    """Operations of all points, and bytes of what comes in and goes out.

    0 where sizes or data decide.
    """
    buffers = [b for b in nest.buffers if b.role in PASSED_ON]
    known = all(isinstance(n, int) and n >= 0 for b in buffers for n in b.shape)
    known = known and all(
        isinstance(n, int) and n >= 0 for stage in nest.stages for n in stage.extents
    )
    if not known:
        return 0, 0
    size = bytes_of(nest, PASSED_ON)
    return sum(map(operations_of, nest.stages)), size


def bytes_of(nest: LoopNest, roles: Sequence[Role]) -> int:
    """Of a kernel's buffers of known shapes that are these to it."""
    found = [b for b in nest.buffers if b.role in roles]
    return sum(numbers(b.shape) * bits(b.element) for b in found) // 8


def operations_of(stage: Statement) -> int:
    """A product and its sum are two; what only moves numbers is none."""
    each = 2 if stage.is_contraction else len(stage.body)
    if stage.is_reduction and not stage.is_contraction:
        each = max(1, each)
    return each * numbers(stage.extents)


def numbers(extents: Sequence[Any]) -> int:
    """How many points there are, of extents that are known."""
    return prod(int(n) for n in extents)
