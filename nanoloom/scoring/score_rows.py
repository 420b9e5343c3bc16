"""Rows through a program, in batches of near shapes, and back in their order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nanoloom.errors import InputError
from nanoloom.scoring import buckets, run
from nanoloom.scoring.each_row import each_row, row_by_row
from nanoloom.scoring.outputs import Piece, in_order
from nanoloom.scoring.place import Runs
from nanoloom.scoring.ragged import Array, Column, Ragged, gathered
from nanoloom.scoring.rows import Rows
from nanoloom.scoring.rowwise import Rowwise
from nanoloom.scoring.settings import Padding, Settings

Mapped = Callable[
    [Callable[[Array], list[Piece]], Iterable[Array]], Iterable[list[Piece]]
]


@dataclass(frozen=True)
class Scored:
    """Outputs of all rows.  refused: why rows have none, by number."""

    count: int
    columns: dict[str, Column]
    refused: dict[int, str]

    def valid(self) -> Array | None:
        """Which rows there are; None for all."""
        if not self.refused:
            return None
        made = np.ones(self.count, bool)
        made[list(self.refused)] = False
        return made


def score(
    rows: Rows,
    program: Runs,
    model: Rowwise,
    settings: Settings,
    workers: int,
    mapped: Mapped,
) -> Scored:
    """Outputs of the rows.  mapped: as `map`, by as many threads as `workers`.

    Raises InputError for the first row that cannot be scored, unless errors are a
    column.
    """
    refused = dict(rows.refused)
    padding = None if settings.reproducible else settings.padding
    good = rows.good()
    most = rows_a_batch(len(good), model, settings, workers)
    call = calling(program, model, settings)
    feeds = Feeding(rows, model, padding)

    def piece(members: Array) -> list[Piece]:
        made = list(run.results(call, feeds.inputs, members, refused))
        return [(own, feeds.trimmed(own, outputs)) for own, outputs in made]

    cut = buckets.batches(rows.columns, good, most, padded=padding is not None)
    pieces = [x for found in mapped(piece, list(cut)) for x in found]
    if refused and not settings.in_column:
        first = min(refused)
        where = f"row {rows.first + first}"
        raise InputError(refused[first], where=where, hint=ROWS_HINT)
    columns = {
        output.name: in_order(output, model.row(output), pieces, rows.count)
        for output in model.chosen(settings.outputs)
    }
    return Scored(rows.count, columns, refused)


ROWS_HINT = 'errors="column" (--errors column) scores the other rows'


def rows_a_batch(count: int, model: Rowwise, settings: Settings, workers: int) -> int:
    """Each worker gets a share; no batch is larger than the program takes, but where
    each row is a run of its own."""
    share = -(-count // workers)
    most = None if settings.reproducible else model.most
    return max(1, min(settings.batch_rows, share, most or settings.batch_rows))


def calling(program: Runs, model: Rowwise, settings: Settings) -> run.Call:
    """How a batch is run."""
    if model.fixed is None or model.fixed == 1:
        return each_row(program) if settings.reproducible else run.by_batches(program)
    full = run.filled_up(program, model.fixed)
    return row_by_row(full) if settings.reproducible else run.by_batches(full)


@dataclass(frozen=True)
class Feeding:
    """The inputs of a batch; with padding, what is behind a row's end is cut off."""

    rows: Rows
    model: Rowwise
    padding: Padding | None

    def inputs(self, members: Array) -> dict[str, Array]:
        made: dict[str, Array] = {}
        for x in self.model.inputs:
            column = self.rows.columns.get(x.name)
            if column is None:
                made[x.name] = buckets.mask_of(self.lengths(members), x.dtype)
            elif self.padding is not None and isinstance(column, Ragged):
                is_mask = x.name == self.padding.mask
                fill = 0 if is_mask else self.padding.fill.get(x.name, 0)
                made[x.name] = buckets.padded(column, members, fill)
            else:
                made[x.name] = gathered(column, members)
        return made

    def lengths(self, members: Array) -> Sequence[int]:
        """Of the rows, along their first axis."""
        for x in self.model.inputs:
            column = self.rows.columns.get(x.name)
            if (
                column is not None
                and self.model.row(x)
                and is_length(self.model.row(x))
            ):
                if isinstance(column, Ragged):
                    return [column.shape(int(i))[0] for i in members]
                return [column.shape[1]] * len(members)
        reason = "no input has a length that the mask could be made of"
        raise InputError(reason, where="scoring", hint="give the mask as a column")

    def trimmed(self, members: Array, outputs: run.Arrays) -> dict[str, Any]:
        """Outputs without what is behind the end of each row."""
        names = self.padded_dims()
        if not names:
            return dict(outputs)
        lengths = self.lengths(members)
        longest = max(lengths)
        made: dict[str, Any] = {}
        for output in self.model.outputs:
            array = outputs[output.name]
            axes = [i for i, n in enumerate(self.model.row(output)) if n in names]
            axes = [i for i in axes if array.shape[i + 1] == longest]
            made[output.name] = array
            if axes and min(lengths) < longest:
                made[output.name] = [
                    row[
                        tuple(
                            slice(n) if i in axes else slice(None)
                            for i in range(row.ndim)
                        )
                    ]
                    for row, n in zip(array, lengths, strict=True)
                ]
        return made

    def padded_dims(self) -> set[str]:
        """Names of the dimensions along which rows are filled up."""
        if self.padding is None:
            return set()
        shapes = [
            self.model.row(x)
            for x in self.model.inputs
            if isinstance(self.rows.columns.get(x.name), Ragged)
        ]
        return {str(shape[0]) for shape in shapes if is_length(shape)}


def is_length(shape: Sequence[int | str]) -> bool:
    return bool(shape) and isinstance(shape[0], str)
