"""A nest as people draw it: loops, and what stands inside of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from nanoloom.nest.loop import Placement

if TYPE_CHECKING:
    from nanoloom.nest.nest import LoopNest

INDENT = "  "


def print_nest(nest: LoopNest) -> str:
    """Each stage's loops of more than one step, and what is computed inside of them.

    for n in 0..5:
      forall xo in 0..20 by 5 (x):
        conv ...
        for xi in 0..5 (x):
          relu: relu[n, x] <- conv[n, x]
    """
    placed = [nest.placement(stage.name) for stage in nest.stages]
    lines: list[str] = []
    for placement in placed:
        if placement.at is None:
            lines += lines_of(nest, placement, 0)
    return "\n".join(lines)


def lines_of(nest: LoopNest, placement: Placement, depth: int) -> Iterator[str]:
    """One stage at a depth, with all that is computed inside."""
    for loop in placement.loops:
        for stage in nest.stages:
            for number, *where in nest.placement(stage.name).hoisted:
                if (placement.stage, loop.name) == tuple(where):
                    part = stage.reads[number].buffer
                    yield f"{INDENT * depth}{stage.name}: a copy of {part}"
        if loop.trips != 1:
            yield f"{INDENT * depth}{loop}:"
            depth += 1
        for stage in nest.stages:
            inner = nest.placement(stage.name)
            if inner.at == (placement.stage, loop.name):
                yield from lines_of(nest, inner, depth)
    by = f" by {placement.by}" if placement.by else ""
    stage = nest.stage(placement.stage)
    copies = ", ".join(
        stage.reads[number].buffer + " widened" * (number in placement.widened)
        for number, _ in placement.copied
    )
    copied = f", with a copy of {copies}" if copies else ""
    stored = f", stored in {placement.stored}" if placement.stored else ""
    yield f"{INDENT * depth}{stage}{by}{copied}{stored}"
