"""DataFrames and arrays of Dask scored by a model: one program a worker."""

from __future__ import annotations

from typing import Any

import pandas as pd  # pyright: ignore[reportMissingImports]
from distributed import WorkerPlugin  # pyright: ignore[reportMissingImports]

from nanoloom import scoring
from nanoloom.errors import InputError


class Plugin(WorkerPlugin):
    """Compiles and loads the program where a worker starts, before any rows come.

    client.register_plugin(Plugin(scorer))

    The first worker of a machine compiles, the others wait for it.  Without the plugin
    the first partition of a worker does so.
    """

    def __init__(self, scorer: scoring.Scorer) -> None:
        self.scorer, self.name = scorer, f"nanoloom-{scorer.place.key}"

    def setup(self, worker: Any) -> None:
        del worker
        self.scorer.place.prepare()


def score(frame: Any, scorer: scoring.Scorer) -> Any:
    """A DataFrame of the results, not computed yet.

    A worker's threads score a partition each, on one CPU each.
    """
    own = scorer.on_threads(1)
    return frame.map_partitions(_of_frame, own, meta=_meta(frame._meta, own))


def score_array(array: Any, scorer: scoring.Scorer) -> Any:
    """An array [rows, ...] of the only output, not computed yet.

    array: of the only input; its chunks may cut the rows only.  Raises InputError for
    other models, and for outputs whose rows differ in shape.
    """
    model = scorer.rowwise
    outputs = model.chosen(scorer.settings.outputs)
    if len(model.inputs) != 1 or len(outputs) != 1:
        said = f"the model has {len(model.inputs)} inputs and {len(outputs)} outputs"
        hint = "name one: outputs=[...]; or score a DataFrame"
        raise InputError(said, where="score_array", hint=hint)
    if any(len(parts) > 1 for parts in array.chunks[1:]):
        hint = "array.rechunk({axis: -1}) for the others"
        raise InputError("is cut within rows", where="array", hint=hint)
    shape = model.row(outputs[0])
    sizes = [n for n in shape if isinstance(n, int)]
    if len(sizes) < len(shape):
        reason = f"a row is {shape}: its sizes are known only when it runs"
        raise InputError(reason, where=f"output {outputs[0].name}", hint="give dims")
    own, names = scorer.on_threads(1), (model.inputs[0].name, outputs[0].name)
    return array.map_blocks(
        _of_block,
        own,
        names,
        dtype=outputs[0].dtype,
        chunks=(array.chunks[0], *[(n,) for n in sizes]),
        drop_axis=list(range(1, array.ndim)),
        new_axis=list(range(1, len(sizes) + 1)),
        meta=pd.Series([], dtype=outputs[0].dtype).to_numpy(),
    )


def _of_frame(frame: Any, scorer: scoring.Scorer) -> Any:
    return scorer(frame)


def _of_block(block: Any, scorer: scoring.Scorer, names: tuple[str, str]) -> Any:
    given, made = names
    return scorer({given: block})[made]


def _meta(frame: Any, scorer: scoring.Scorer) -> Any:
    """The result's columns and types, of those of an empty frame."""
    kept = frame[list(scorer.settings.keep)]
    made = scorer.tables.made_schema().empty_table().to_pandas()
    made.index = frame.index[:0]
    return pd.concat([kept.iloc[:0], made], axis=1)
