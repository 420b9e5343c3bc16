"""One batch through a program; what fails is narrowed down to its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from nanoloom.errors import InputError
from nanoloom.scoring.outputs import Piece, require_rows
from nanoloom.scoring.ragged import Array

Arrays = Mapping[str, Array]
Call = Callable[[Arrays], Arrays]
Feeds = Callable[[Array], dict[str, Array]]  # the inputs of these rows


def results(
    call: Call, feeds: Feeds, rows: Array, refused: dict[int, str]
) -> Iterator[Piece]:
    """Outputs of the rows; those that the program refuses are noted with the reason.

    A batch that fails is halved until it has one row: an index out of range says
    nothing of the others.
    """
    try:
        made = call(feeds(rows))
    except InputError as error:
        if len(rows) == 1:
            refused[int(rows[0])] = str(error)
            return
        for half in np.array_split(rows, 2):
            yield from results(call, feeds, half, refused)
        return
    yield rows, made


def by_batches(program: Call) -> Call:
    """The program as it is; its outputs have a row for each of the inputs'."""

    def call(arrays: Arrays) -> Arrays:
        made = program(arrays)
        require_rows(made, len(next(iter(arrays.values()))))
        return made

    return call


def filled_up(program: Call, size: int) -> Call:
    """A program for so many rows: the last row is repeated, its copies are left out."""

    def call(arrays: Arrays) -> Arrays:
        count = len(next(iter(arrays.values())))
        places = np.minimum(np.arange(size), count - 1)
        full = arrays if count == size else {n: a[places] for n, a in arrays.items()}
        made = program(dict(full))
        require_rows(made, size)
        return {name: array[:count] for name, array in made.items()}

    return call
