"""`Scorer`: a model as a function from tables to tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nanoloom.errors import Error, InputError, public
from nanoloom.runtime.threads import assigned_threads
from nanoloom.scoring.place import Dims, Place
from nanoloom.scoring.rowwise import Rowwise
from nanoloom.scoring.score_rows import score
from nanoloom.scoring.settings import Padding, Settings

if TYPE_CHECKING:
    from nanoloom.scoring.tables import Tables

BATCH_ROWS = 64


class Scorer:
    """A model that scores tables: Arrow, pandas or dicts of arrays; such come out.

    It pickles as the model's digest and place.  The code is compiled once a machine,
    by whichever process calls first, and the weights are in memory once.  Threads may
    call it at the same time.

    model: an ONNX file, a compiled library, ONNX bytes, or a program.
    columns: of the table, by input: one, or several that are the features of an input
    [rows, features].  By default an input takes the column of its name.
    outputs: names of those that are wanted, all by default.
    keep: columns of the table that the result has, too.
    dims: numbers or bounds of dimensions, as for `compile`.
    batch_rows: that run together.
    mask: the input that says which positions of a row count.  Then rows of near lengths
    run together, filled up with `fill` (a number by input, 0 by default); the mask is
    made where the table has none.  Without it only rows of one shape run together.
    reproducible: each row runs alone, so that its result is the same in any table.
    level: the CPU that code is for, as x86-64-v3, so that all machines give the same
    bits; by default each machine has code for its own.
    errors: "raise", or "column" for a column `error` with the reason for each row that
    cannot be scored, whose outputs are null.
    convert: whether columns of other types are cast, where values may change.
    threads: default: NANOLOOM_THREADS, or what affinity and cgroup quota allow.
    cache: a folder; default: NANOLOOM_CACHE, or the user's.
    """

    @public
    def __init__(
        self,
        model: object,
        *,
        columns: Mapping[str, str | Sequence[str]] | None = None,
        outputs: Sequence[str] | None = None,
        keep: Sequence[str] = (),
        dims: Dims | None = None,
        batch_rows: int = BATCH_ROWS,
        mask: str | None = None,
        fill: Mapping[str, float] | None = None,
        reproducible: bool = False,
        level: str | None = None,
        errors: str = "raise",
        convert: bool = False,
        threads: int | None = None,
        cache: str | Path | None = None,
    ) -> None:
        padding = None if mask is None else Padding(mask, dict(fill or {}))
        if fill and mask is None:
            reason = "fill is given, and no mask that says what is filled up"
            raise InputError(reason, hint="name it: mask=... (--mask INPUT)")
        folder = None if cache is None else str(cache)
        self.settings = Settings.checked(
            columns, outputs, keep, batch_rows, padding, reproducible, errors, convert
        )
        self.threads = None if threads is None else int(threads)
        place = Place.of(model, dims or {}, level, folder)
        self.place = alone(place) if reproducible else place

    def on_threads(self, threads: int) -> Scorer:
        """The same on so many threads: a worker's, as its engine assigns them."""
        made = Scorer.__new__(Scorer)
        made.__setstate__({**self.__getstate__(), "threads": threads})
        return made

    def __getstate__(self) -> dict[str, object]:
        return {"place": self.place, "settings": self.settings, "threads": self.threads}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)

    @cached_property
    def rowwise(self) -> Rowwise:
        """The model's inputs and outputs; nothing is compiled for it."""
        made = Rowwise.of(self.place.program())
        self.settings.require(made)
        return made

    @cached_property
    def workers(self) -> int:
        """Threads that score batches."""
        return self.threads or assigned_threads()

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self.workers, "nanoloom-score")

    @cached_property
    def tables(self) -> Tables:
        """How tables become rows and back.  Raises Error without pyarrow."""
        try:
            from nanoloom.scoring.tables import Tables
        except ModuleNotFoundError as error:
            if error.name != "pyarrow":
                raise
            reason = "tables need pyarrow, which is not installed"
            raise Error(reason, hint="pip install 'nanoloom[score]'") from None
        return Tables(self.rowwise, self.settings)

    @public
    def __call__(self, table: Any) -> Any:
        """The scored table: a Table, RecordBatch, DataFrame, or a dict of arrays.

        Raises InputError for columns that no input takes, and, unless errors are a
        column, for the first row that cannot be scored.
        """
        return self._arrays(table) if isinstance(table, Mapping) else self.scored(table)

    @public
    def scored(self, table: Any, first: int = 0) -> Any:
        """The same for Arrow and pandas.  first: what its first row is called."""
        return self.tables.scored(table, self._score, first)

    def _arrays(self, given: Mapping[str, Any]) -> dict[str, Any]:
        from nanoloom.scoring.array_tables import kept, rows_of

        rows = rows_of(given, self.rowwise, self.settings)
        made = self._score(rows)
        if self.settings.in_column:
            reason = "errors in a column are for tables of Arrow and pandas"
            raise InputError(reason, hint="give such, or errors='raise'")
        return {**kept(given, self.settings), **made.columns}

    def _score(self, rows: Any) -> Any:
        run = self._pool.map if self.workers > 1 else map
        program = self.place.program()
        return score(rows, program, self.rowwise, self.settings, self.workers, run)

    @public
    def schema(self, given: Any) -> Any:
        """The schema of the result, of that of a table; nothing is compiled for it."""
        return self.tables.schema(given)

    def __repr__(self) -> str:
        names = ", ".join(x.name for x in self.rowwise.chosen(self.settings.outputs))
        return f"<nanoloom.scoring.Scorer {self.place.digest[:12]}: {names}>"


def alone(place: Place) -> Place:
    """The same model for one row a call, where its batch has no number."""
    found = Rowwise.of(place.program())
    names = {n for n in found.batch if not n.isdecimal()}
    if found.fixed is not None or isinstance(place.model, str) or not names:
        return place
    return place.with_dims(dict.fromkeys(names, 1))
