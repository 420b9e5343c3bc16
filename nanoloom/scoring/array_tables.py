"""Dicts of arrays as rows: no Arrow is needed for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nanoloom.errors import InputError
from nanoloom.interface.interface import Interface
from nanoloom.scoring.ragged import Array, Column, Ragged
from nanoloom.scoring.rows import Rows, columns_of, fitted, joined
from nanoloom.scoring.rowwise import Rowwise
from nanoloom.scoring.settings import Settings

Pair = tuple[Column, Array]  # a column, and which rows have a null


def rows_of(given: Mapping[str, Any], model: Rowwise, settings: Settings) -> Rows:
    """Arrays [rows, ...], and lists of arrays that differ in shape, by column."""

    def column(name: str) -> Pair:
        made = column_of(given[name], f"column {name}")
        return made, np.zeros(len(made), bool)

    return bound(list(given), column, model, settings)


def column_of(given: Any, where: str) -> Column:
    if isinstance(given, np.ndarray):
        if given.ndim == 0:
            raise InputError("is one number, no column of rows", where=where)
        if given.dtype != object:
            return given
    rows = [np.asarray(row) for row in given]
    if any(row.dtype.kind in "OUS" for row in rows):
        return np.array(list(given), object)
    if len({row.shape for row in rows}) <= 1:
        return np.stack(rows) if rows else np.zeros(0)
    if len({(row.ndim, row.dtype) for row in rows}) > 1 or not rows[0].ndim:
        raise InputError("has rows of several types or ranks", where=where)
    return Ragged.of(rows, rows[0])


def taken(
    known: Sequence[str], model: Rowwise, settings: Settings
) -> list[tuple[Interface, Sequence[str]]]:
    """The inputs that rows are made for, and the columns of each.

    A mask that is no column is made of the rows.  Raises InputError as `columns_of`.
    """
    mask = settings.padding.mask if settings.padding else None
    made_here = {mask} if mask not in settings.columns and mask not in known else set()
    inputs = [x for x in model.inputs if x.name not in made_here]
    given = {n: c for n, c in settings.columns.items() if n not in made_here}
    chosen = columns_of(inputs, given, known)
    return [(x, chosen[x.name]) for x in inputs]


def bound(
    known: Sequence[str], column: Any, model: Rowwise, settings: Settings
) -> Rows:
    """Rows of columns, which `column` gives by name.

    Raises InputError for columns of several lengths and those that no input takes.
    """
    made = Rows(0, {})
    counts: dict[int, str] = {}
    for x, names in taken(known, model, settings):
        found, null = joined(x, [column(name) for name in names], names)
        counts.setdefault(len(found), names[0])
        fit = fitted(x, model.row(x), found, null, convert=settings.convert)
        made.columns[x.name] = fit[0]
        for row, reason in fit[1].items():
            made.refused.setdefault(row, reason)
    if len(counts) > 1:
        said = ", ".join(f"{name} has {count} rows" for count, name in counts.items())
        raise InputError(said, where="columns", hint="give columns of one length")
    made.count = next(iter(counts), 0)
    return made


def kept(given: Mapping[str, Any], settings: Settings) -> dict[str, Any]:
    for name in settings.keep:
        if name not in given:
            raise InputError(f"the table has no column {name!r}", where="keep")
    return {name: given[name] for name in settings.keep}
