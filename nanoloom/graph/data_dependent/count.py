"""How many elements along an axis are meant, where only the program finds out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import onnx_ir as ir

from nanoloom.graph.types import deciding_sources, is_static, shape_of

KEY = "nanoloom.counts"  # in the `meta` of a value: of its axes
COUNT = "nanoloom.count"  # in the `meta` of a count's value: the count


@dataclass(frozen=True, eq=False)
class Count:
    """A number that the program computes, int64 [1], from 0 to `most`.

    where: the node that made it, in the words of a message.  deciding: the values that
    decide about it.
    """

    value: ir.Value
    most: int
    where: str
    deciding: tuple[ir.Value | None, ...] = ()

    @property
    def sources(self) -> tuple[str, ...]:
        """The model's inputs that decide about it: only messages look for them."""
        names = (name for x in self.deciding for name in deciding_sources(x))
        return tuple(dict.fromkeys(names))

    def limited(self, most: int) -> Count:
        """The same, where it is known to be at most this."""
        return Count(self.value, most, self.where, self.deciding)


Size = int | Count
Counts = Mapping[int, Count]  # by axis


def counts_of(value: ir.Value | None) -> Counts:
    """Of the axes whose extent the program computes; others are as the shape says."""
    return {} if value is None else value.meta.get(KEY, {})


def set_counts(value: ir.Value, counts: Counts) -> ir.Value:
    if counts:
        value.meta[KEY] = dict(sorted(counts.items()))
    return value


def sizes_of(value: ir.Value) -> list[Size]:
    """The extents of a value whose largest shape is known."""
    assert is_static(value), value.name
    counts = counts_of(value)
    return [counts.get(axis, size) for axis, size in enumerate(shape_of(value))]


def most_of(size: Size) -> int:
    return size.most if isinstance(size, Count) else size
