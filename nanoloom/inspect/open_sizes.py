"""Whether open dimensions of a model are sizes at run time, by its graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx_ir

from nanoloom.errors import Error
from nanoloom.frontend.dims import bind, dim_texts, symbols
from nanoloom.frontend.inputs import input_specs
from nanoloom.linalg.operators import OPERATORS
from nanoloom.sizes.differs import Differs
from nanoloom.sizes.graph import open_values
from nanoloom.sizes.rows import BATCHES, batch_of, require_rows
from nanoloom.sizes.samples import tried_samples


def why_compiled_for_each(model: onnx_ir.Model, dims: Mapping[str, int]) -> str:
    """Why each size of the open dimensions is compiled on its own; "" where none is.

    dims: those that have numbers.  The model stays as it is.
    """
    names = [name for name in symbols(model) if name not in dims]
    if set(names) != {text for text in dim_texts(model) if text not in dims}:
        return "a dimension is an expression of others"
    shapes = [x.shape for x in input_specs(model)]
    reason = "it has too many dimensions"
    for samples in tried_samples(shapes, names):
        try:
            open_values(
                lambda sample: bind(model, {**dims, **{n: sample[n] for n in names}}),
                OPERATORS.keys(),
                samples,
            )
        except (Differs, Error) as error:
            reason = str(error)
        else:
            return ""
    try:
        require_batch(model, dims, shapes, names)
    except (Differs, Error) as error:
        return f"{reason}; {error}"
    return ""


def require_batch(
    model: onnx_ir.Model,
    dims: Mapping[str, int],
    shapes: Sequence[Sequence[int | str]],
    names: Sequence[str],
) -> None:
    """Raise Differs or Error for a model that is not computed row by row."""
    name = batch_of(shapes, names)
    bound = [bind(model, {**dims, name: n}) for n in BATCHES]
    require_rows(bound, OPERATORS.keys(), BATCHES)
