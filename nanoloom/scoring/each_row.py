"""Each row alone: nothing of a result is another row's."""

from __future__ import annotations

import numpy as np

from nanoloom.api.loaded import Loaded
from nanoloom.runtime.library import Instance
from nanoloom.runtime.rows import run_rows
from nanoloom.scoring.outputs import require_rows
from nanoloom.scoring.place import Runs
from nanoloom.scoring.run import Arrays, Call


def each_row(program: Runs) -> Call:
    """The program for one row, on all rows: of each the bits of a call of its own.

    Compiled code goes over them where shapes alone decide what runs; else, and where a
    row fails, each is a call.
    """
    one_by_one = row_by_row(program)

    def call(arrays: Arrays) -> Arrays:
        first = {name: array[:1] for name, array in arrays.items()}
        plain = plain_instance(program, first)
        made = None if plain is None else run_rows(plain, arrays)
        return one_by_one(arrays) if made is None else made

    return call


def row_by_row(program: Call) -> Call:
    """Each row in a call of its own."""

    def call(arrays: Arrays) -> Arrays:
        count = len(next(iter(arrays.values())))
        made = [
            program({n: a[i : i + 1] for n, a in arrays.items()}) for i in range(count)
        ]
        for one in made:
            require_rows(one, 1)
        return {name: np.concatenate([one[name] for one in made]) for name in made[0]}

    return call


def plain_instance(program: Runs, arrays: Arrays) -> Instance | None:
    """What runs arrays of these shapes, whatever numbers are in them; None where these
    decide, too, or where a call does more than to run it."""
    if isinstance(program, Loaded):
        return program.plain_instance(arrays)
    if program.source.texts:
        return None
    found = program.variant(given := program.checked(arrays))
    more = found.counted or len(found.library.inputs) > len(given)  # rooms
    plain = not more and program.is_known_by_shapes(found, given)
    return found.instance if plain else None
