"""DataFrames of Spark scored by a model: functions for mapInArrow and mapInPandas.

frame.mapInArrow(map_in_arrow(scorer), schema(scorer, frame.schema))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa

from nanoloom import scoring

Mapped = Callable[[Iterable[Any]], Iterator[Any]]


def map_in_arrow(scorer: scoring.Scorer) -> Mapped:
    """RecordBatches in and out.  Lists have no fixed size: Spark has no such."""

    def scored(batches: Iterable[Any]) -> Iterator[Any]:
        own = _of_task(scorer)
        for batch in batches:
            yield plain(own(batch))

    return scored


def map_in_pandas(scorer: scoring.Scorer) -> Mapped:
    """DataFrames in and out."""

    def scored(frames: Iterable[Any]) -> Iterator[Any]:
        own = _of_task(scorer)
        for frame in frames:
            yield own(frame)

    return scored


def schema(scorer: scoring.Scorer, given: Any) -> Any:
    """The result's StructType, of that of the DataFrame."""
    from pyspark.sql.pandas.types import (  # pyright: ignore[reportMissingImports]
        from_arrow_schema,
        to_arrow_schema,
    )

    made = scorer.schema(to_arrow_schema(given))
    return from_arrow_schema(plain(made.empty_table()).schema)


def plain(table: Any) -> Any:
    """Fixed-size lists as lists, and tensors as those of all their numbers."""
    columns = [_plain(table.column(name)) for name in table.schema.names]
    return type(table).from_arrays(columns, names=table.schema.names)


def _plain(column: Any) -> Any:
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    kind = column.type
    if pa.types.is_fixed_size_list(kind):
        return column.cast(pa.list_(kind.value_type))
    return column


def _of_task(scorer: scoring.Scorer) -> scoring.Scorer:
    """On the CPUs of a task of Spark; as it is outside of one."""
    try:
        from pyspark import TaskContext  # pyright: ignore[reportMissingImports]
    except ModuleNotFoundError:
        return scorer
    task = TaskContext.get()
    return scorer if task is None else scorer.on_threads(scorer.threads or task.cpus())
