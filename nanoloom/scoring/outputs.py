"""Results of batches in the order of the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nanoloom.errors import Error
from nanoloom.interface.interface import Interface
from nanoloom.scoring.ragged import Array, Column, Ragged

# Numbers of rows, and their outputs: arrays, or lists of rows of several shapes.
Piece = tuple[Array, Mapping[str, Any]]
RowShape = Sequence[int | str]


def require_rows(outputs: Mapping[str, Any], count: int) -> None:
    """Raise Error for an output that has no row for each row of the inputs."""
    for name, array in outputs.items():
        if not isinstance(array, np.ndarray) or array.shape[:1] != (count,):
            shape = getattr(array, "shape", "a list")
            raise Error(
                f"is {shape} for {count} rows: it has no row for each",
                where=f"output {name}",
                hint="leave it out: name the others as outputs (--only-output)",
            )


def in_order(
    output: Interface, shape: RowShape, pieces: Sequence[Piece], count: int
) -> Column:
    """An output of all rows.  shape: of one row as the model declares it.

    Rows in no piece are zeros, or empty.
    """
    name = output.name
    found = {row.shape for _, piece in pieces for row in first_rows(piece[name])}
    missing = count - sum(len(rows) for rows, _ in pieces)
    sizes = tuple(n for n in shape if isinstance(n, int))
    whole = pieces[0][1][name] if len(pieces) == 1 and not missing else None
    if isinstance(whole, np.ndarray) and is_sorted(pieces[0][0]):
        return whole
    if len(sizes) == len(shape) or (len(found) == 1 and not missing):
        # Of what is declared if nothing was made.
        inner = found.pop() if len(found) == 1 else sizes
        made = np.zeros((count, *inner), dtype_of(output))
        for rows, piece in pieces:
            made[rows] = piece[name]
        return made
    empty = np.zeros([n if isinstance(n, int) else 0 for n in shape], dtype_of(output))
    rows_of = [empty] * count
    for rows, piece in pieces:
        for row, array in zip(rows.tolist(), piece[name], strict=True):
            rows_of[row] = array
    return Ragged.of(rows_of, empty)


def first_rows(rows: Array | Sequence[Array]) -> Sequence[Array]:
    """One row of each shape that there is: all of an array have one."""
    return rows[:1] if isinstance(rows, np.ndarray) else rows  # type: ignore - what is no array is a sequence


def dtype_of(output: Interface) -> np.dtype:
    return np.dtype(object) if output.is_text else output.dtype


def is_sorted(rows: Array) -> bool:
    return bool((np.diff(rows) == 1).all())
