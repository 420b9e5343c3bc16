"""Tables of Arrow and pandas: in and out, in the form in which they come."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from nanoloom.errors import InputError, some_of
from nanoloom.scoring.array_tables import bound
from nanoloom.scoring.arrow_columns import column_of
from nanoloom.scoring.arrow_outputs import arrow_of, type_of
from nanoloom.scoring.ragged import Array, Column
from nanoloom.scoring.rows import Rows
from nanoloom.scoring.rowwise import Rowwise
from nanoloom.scoring.score_rows import Scored
from nanoloom.scoring.settings import ERROR_COLUMN, Settings

Score = Callable[[Rows], Scored]


class Tables:
    """What a model makes of tables, and of their schemas."""

    def __init__(self, model: Rowwise, settings: Settings) -> None:
        self.model, self.settings = model, settings
        self.outputs = model.chosen(settings.outputs)

    def schema(self, given: Any) -> Any:
        """Columns that are kept, outputs, and errors if they are wanted."""
        self.require_kept(given.names)
        kept = [given.field(name) for name in self.settings.keep]
        return pa.schema([*kept, *self.made_schema()])

    def made_schema(self) -> Any:
        """Outputs, and errors if they are wanted."""
        fields = [pa.field(x.name, type_of(x, self.model.row(x))) for x in self.outputs]
        if self.settings.in_column:
            fields.append(pa.field(ERROR_COLUMN, pa.string()))
        return pa.schema(fields)

    def require_kept(self, known: Sequence[str]) -> None:
        for name in self.settings.keep:
            if name not in known:
                hint = some_of(known, name)
                reason = f"the table has no column {name!r}"
                raise InputError(reason, where="keep", hint=hint)

    def scored(self, table: Any, score: Score, first: int = 0) -> Any:
        """The result in the form of the table.  Raises InputError for no table."""
        if isinstance(table, pa.Table | pa.RecordBatch):
            return self._arrow(table, score, first)
        if hasattr(table, "to_numpy") and hasattr(table, "columns"):
            made = self._arrow(of_frame(table), score, first).to_pandas()
            made.index = table.index
            return made
        raise InputError(
            f"is a {type(table).__name__}",
            where="table",
            hint="give Arrow's Table or RecordBatch, a DataFrame, or a dict of arrays",
        )

    def _arrow(self, table: Any, score: Score, first: int) -> Any:
        schema = self.schema(table.schema)

        def column(name: str) -> tuple[Column, Array]:
            return column_of(table.column(name), f"column {name}")

        rows = bound(table.schema.names, column, self.model, self.settings)
        rows.first = first
        made = score(rows)
        columns = [table.column(name) for name in self.settings.keep]
        valid = made.valid()
        columns += [
            arrow_of(made.columns[x.name], schema.field(x.name).type, valid)
            for x in self.outputs
        ]
        if self.settings.in_column:
            reasons = [made.refused.get(row) for row in range(made.count)]
            columns.append(pa.array(reasons, pa.string()))
        return type(table).from_arrays(columns, schema=schema)


def of_frame(frame: Any) -> Any:
    """A DataFrame as a table; numbers stay where they are, NaN stays a number."""
    names = [str(name) for name in frame.columns]
    arrays = [arrow_of_series(frame[name]) for name in frame.columns]
    return pa.Table.from_arrays(arrays, names)


def arrow_of_series(series: Any) -> Any:
    if isinstance(series.dtype, np.dtype) and series.dtype != object:
        return pa.array(series.to_numpy(), from_pandas=False)
    if isinstance(series.dtype, np.dtype) and len(series):
        first = series.iloc[0]
        if isinstance(first, np.ndarray) and first.ndim > 1:
            return tensors_of(series)
    try:
        return pa.array(series)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        said = str(error).splitlines()[0]
        raise InputError(
            f"cannot become a column of Arrow: {said}", where=f"column {series.name}"
        ) from None


def tensors_of(series: Any) -> Any:
    """Arrays of several axes, as tensors; raises InputError for several shapes."""
    shapes = {getattr(row, "shape", None) for row in series}
    if len(shapes) > 1:
        reason = "has arrays of several shapes"
        raise InputError(reason, where=f"column {series.name}", hint="give Arrow's")
    return pa.FixedShapeTensorArray.from_numpy_ndarray(np.stack(list(series)))
