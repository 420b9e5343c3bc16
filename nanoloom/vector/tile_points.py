"""The points of a tile: one vector of every result each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from nanoloom.ir.mlir import ir
from nanoloom.vector.value_cache import ValueCache


@dataclass(frozen=True)
class Point:
    """One vector of every result.

    ivs: where it begins, of all dimensions.  mask: the lanes that count, None for all.
    step: from lane to lane.
    """

    ivs: tuple[ir.Value, ...]
    mask: ir.Value | None = None
    step: int = 1

    def moved(self, dim: int, to: ir.Value) -> Point:
        """The same at another place of one dimension."""
        return replace(self, ivs=tuple(with_value(self.ivs, dim, to)))


def with_value(ivs: Sequence[ir.Value], dim: int, value: ir.Value) -> list[ir.Value]:
    """The loop variables with one of them at a value."""
    return [*ivs[:dim], value, *ivs[dim + 1 :]]


# What stands inside the loops of sums: the next values of some points' results.
Step = Callable[[list[Point], list[ir.Value], ValueCache], list[ir.Value]]
