"""Rows of several shapes, in one array."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Ragged:
    """Row i is values[offsets[i]:offsets[i + 1]].

    values: [total, *inner].  offsets: int64 [rows + 1], from 0.  shapes: int64
    [rows, rank], where a row has more axes than one of its own: values are flat then.
    """

    values: Array
    offsets: Array
    shapes: Array | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def row(self, index: int) -> Array:
        found = self.values[self.offsets[index] : self.offsets[index + 1]]
        return found if self.shapes is None else found.reshape(self.shapes[index])

    def shape(self, index: int) -> tuple[int, ...]:
        if self.shapes is not None:
            return tuple(int(n) for n in self.shapes[index])
        length = int(self.offsets[index + 1] - self.offsets[index])
        return length, *self.values.shape[1:]

    @classmethod
    def of(cls, rows: Sequence[Array], like: Array) -> Ragged:
        """Of arrays that differ in their first axis, or in any.

        like: an array of the same element type and axes, for no rows at all.
        """
        if {row.shape[1:] for row in rows} <= {like.shape[1:]}:
            offsets = np.cumsum([0, *map(len, rows)], dtype=np.int64)
            return cls(np.concatenate([like[:0], *rows]), offsets)
        flat = [row.reshape(-1) for row in rows]
        offsets = np.cumsum([0, *map(len, flat)], dtype=np.int64)
        shapes = np.array([row.shape for row in rows], np.int64)
        return cls(np.concatenate(flat), offsets, shapes)


Column: TypeAlias = Array | Ragged


def gathered(column: Column, rows: Array) -> Array:
    """Rows of one shape as an array [rows, *shape]; a view where they follow each other
    in memory."""
    first, count = int(rows[0]), len(rows)
    follow = int(rows[-1]) - first == count - 1 and bool((np.diff(rows) == 1).all())
    if not isinstance(column, Ragged):
        return column[first : first + count] if follow else column[rows]
    if follow:
        begin, end = column.offsets[first], column.offsets[first + count]
        return column.values[begin:end].reshape(count, *column.shape(first))
    return np.stack([column.row(int(i)) for i in rows])
