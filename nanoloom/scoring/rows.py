"""Columns as the inputs of a model: which column is which input, types, shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np

from nanoloom.errors import InputError, some_of
from nanoloom.interface.check_inputs import signature
from nanoloom.interface.interface import Interface
from nanoloom.scoring.ragged import Array, Column, Ragged

Names = Sequence[str]
# Whole numbers of so many bits are floats without a change.
EXACT_BITS = {"float16": 11, "float32": 24, "float64": 53}


@dataclass
class Rows:
    """The inputs of a table's rows.  refused: why a row cannot be scored, by number.

    first: what the first row is called in messages.
    """

    count: int
    columns: dict[str, Column]
    refused: dict[int, str] = field(default_factory=dict[int, str])
    first: int = 0

    def good(self) -> Array:
        """Numbers of the rows that can be scored, in their order."""
        kept = np.ones(self.count, bool)
        kept[list(self.refused)] = False
        return np.flatnonzero(kept)


def columns_of(
    inputs: Sequence[Interface], given: Mapping[str, Names], known: Names
) -> dict[str, tuple[str, ...]]:
    """The columns of each input: those given, else the one of its name.

    given: several columns are the features of an input [rows, features].
    Raises InputError for an input without a column, and for what is no column.
    """
    names = [x.name for x in inputs]
    for name in given:
        if name not in names:
            hint = some_of(set(names), name)
            raise InputError("the model has no such input", where=name, hint=hint)
    chosen = {name: tuple(given.get(name, (name,))) for name in names}
    for name, columns in chosen.items():
        for column in columns:
            if column not in known:
                reason = f"the table has no column {column!r}"
                how = f"columns={{{name!r}: ...}} (--column {name}=...)"
                hint = f"give {how}; {some_of(known, column)}"
                raise InputError(reason, where=f"input {name}", hint=hint)
    return chosen


def joined(
    spec: Interface, parts: Sequence[tuple[Column, Array]], names: Names
) -> tuple[Column, Array]:
    """One column of several, as features; with the rows that have a null."""
    if len(parts) == 1:
        return parts[0]
    where = f"input {spec.name}"
    typed: list[Array] = []
    for (column, _), name in zip(parts, names, strict=True):
        if isinstance(column, Ragged) or column.ndim != 1:
            raise InputError(f"column {name} is no number a row", where=where)
        is_other = column.dtype != spec.dtype and is_exact(column.dtype, spec.dtype)
        typed.append(column.astype(spec.dtype) if is_other else column)
    kinds = {str(column.dtype) for column in typed}
    if len(kinds) > 1:
        hint = f"cast them to {spec.dtype.name}, or give convert=True (--convert)"
        reason = f"its columns are {', '.join(sorted(kinds))}"
        raise InputError(reason, where=where, hint=hint)
    null = np.logical_or.reduce([null for _, null in parts])
    return np.stack(typed, axis=1), null


def fitted(
    spec: Interface,
    shape: Sequence[int | str],
    column: Column,
    null: Array,
    *,
    convert: bool,
) -> tuple[Column, dict[int, str]]:
    """A column as an input takes it, and why rows of it cannot be scored.

    shape: of one row of the input.  Raises InputError where no row fits.
    """
    where = f"input {spec.name}"
    refused = {int(i): f"{where}: is null" for i in np.flatnonzero(null)}
    if isinstance(column, Ragged):
        values = converted(spec, column.values, where, convert=convert)
        made = with_shapes(Ragged(values, column.offsets, column.shapes), shape)
        for i in misfits(shape, made):
            refused.setdefault(i, f"{where}: {mismatch(spec, shape, made.shape(i))}")
        return made, refused
    typed = converted(spec, column, where, convert=convert)
    count, given = len(typed), typed.shape[1:]
    sizes = [n for n in shape if isinstance(n, int)]
    is_flat = len(given) == (0 if prod(sizes) == 1 else 1)
    if len(sizes) == len(shape) and is_flat and prod(given) == prod(sizes):
        return typed.reshape(count, *sizes), refused
    if fits(shape, given):
        return typed, refused
    raise InputError(mismatch(spec, shape, given), where=where)


def misfits(shape: Sequence[int | str], column: Ragged) -> list[int]:
    """Numbers of the rows that an input does not take.  shape: of one of its rows."""
    count = len(column)
    if column.shapes is not None:
        return [i for i in range(count) if not fits(shape, column.shape(i))]
    if not shape or not fits(shape[1:], column.values.shape[1:]):
        return list(range(count))
    if not isinstance(shape[0], int):
        return []
    return np.flatnonzero(np.diff(column.offsets) != shape[0]).tolist()


def with_shapes(column: Ragged, shape: Sequence[int | str]) -> Ragged:
    """Flat rows in the shape that is known; those of another length stay flat."""
    sizes = [n for n in shape if isinstance(n, int)]
    is_flat = column.shapes is None and column.values.ndim == 1
    if not is_flat or len(sizes) != len(shape) or len(sizes) == 1:
        return column
    if not all((np.diff(column.offsets) == prod(sizes)).tolist()):
        return column
    shapes = np.tile(np.array(sizes, np.int64), (len(column), 1))
    return Ragged(column.values, column.offsets, shapes)


def fits(shape: Sequence[int | str], given: Sequence[int]) -> bool:
    return len(shape) == len(given) and all(
        not isinstance(n, int) or n == size
        for n, size in zip(shape, given, strict=True)
    )


def mismatch(spec: Interface, shape: Sequence[int | str], given: Sequence[int]) -> str:
    words = [signature(spec.dtype, sizes) for sizes in (given, shape)]
    return "a row is {}, the model wants {}".format(*words)


def converted(spec: Interface, array: Array, where: str, *, convert: bool) -> Array:
    """The array in the input's type: exactly, or as numpy casts if that is asked for.

    Raises InputError for values that may change.
    """
    if spec.is_text:
        if array.dtype != object:
            raise InputError("is no column of strings", where=where)
        return array
    if array.dtype == spec.dtype:
        return array
    numbers = array.dtype != object
    if numbers and (convert or is_exact(array.dtype, spec.dtype)):
        return array.astype(spec.dtype)
    raise InputError(
        f"its column is {array.dtype.name if numbers else 'strings'}, the model wants "
        f"{spec.dtype.name}",
        where=where,
        hint="cast the column, or give convert=True (--convert)" if numbers else "",
    )


def is_exact(given: np.dtype, wanted: np.dtype) -> bool:
    """Whether every value of a type is one of the other."""
    if not np.can_cast(given, wanted, "safe"):
        return False
    if given.kind in "iu" and wanted.kind not in "iu":
        bits = given.itemsize * 8 - (given.kind == "i")
        return bits <= EXACT_BITS.get(wanted.name, 0)
    return given.kind == wanted.kind or given.kind in "iu"
