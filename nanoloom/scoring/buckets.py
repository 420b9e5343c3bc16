"""Rows cut into batches: of one shape each, or of near lengths where a mask says which
positions count."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from nanoloom.scoring.ragged import Array, Column, Ragged


def batches(
    columns: Mapping[str, Column], rows: Array, most: int, *, padded: bool
) -> Iterator[Array]:
    """Numbers of rows that run together, `most` at once; each row is in one batch.

    rows: those to be scored.  padded: rows of several lengths may be in a batch, which
    is filled up to the longest; else all have the same shapes.  Rows of a shape keep
    their order.
    """
    groups = _groups(columns, rows, padded)
    for _, members in sorted(groups.items()):
        for begin in range(0, len(members), most):
            yield members[begin : begin + most]


def _groups(
    columns: Mapping[str, Column], rows: Array, padded: bool
) -> dict[tuple[object, ...], Array]:
    """Rows by shape; with padding by bucket, sorted by length in each."""
    ragged = [column for column in columns.values() if isinstance(column, Ragged)]
    if not ragged or not len(rows):
        return {(): rows} if len(rows) else {}
    found: dict[tuple[object, ...], list[int]] = {}
    if not padded:
        for row in rows.tolist():
            found.setdefault(tuple(x.shape(row) for x in ragged), []).append(row)
        return {shape: np.array(members) for shape, members in found.items()}
    lengths = np.max([np.diff(x.offsets) for x in ragged], axis=0)[rows]
    order = np.argsort(lengths, kind="stable")
    for row, length in zip(rows[order].tolist(), lengths[order].tolist(), strict=True):
        found.setdefault((bucket_of(length),), []).append(row)
    return {bucket: np.array(members) for bucket, members in found.items()}


def bucket_of(length: int) -> int:
    """The bucket's longest row: a power of two or three quarters of one, at least 8.

    So at most a third of a batch is padding.
    """
    if length <= 8:
        return 8
    power = 1 << (length - 1).bit_length()
    return power * 3 // 4 if length <= power * 3 // 4 else power


def padded(column: Ragged, rows: Array, fill: object) -> Array:
    """Rows [rows, longest, *inner], with `fill` behind their own elements."""
    shapes = [column.shape(int(i)) for i in rows]
    longest = max(shape[0] for shape in shapes)
    made = np.full((len(rows), longest, *shapes[0][1:]), fill, column.values.dtype)
    for place, row in enumerate(rows.tolist()):
        made[place, : shapes[place][0]] = column.row(row)
    return made


def mask_of(lengths: Sequence[int], dtype: np.dtype) -> Array:
    """[rows, longest]: 1 where a row has an element, 0 where it is padded."""
    places = np.arange(max(lengths))
    return (places < np.asarray(lengths)[:, None]).astype(dtype)
