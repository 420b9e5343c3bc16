"""Whether open dimensions of a model are sizes at run time, by its graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import onnx_ir

from nanoloom.errors import Error
from nanoloom.frontend.dims import bind, dim_texts, symbols
from nanoloom.frontend.inputs import input_specs
from nanoloom.linalg.operators import OPERATORS
from nanoloom.sizes.differs import Differs
from nanoloom.sizes.graph import open_values
from nanoloom.sizes.rows import batch_of, require_rows
from nanoloom.sizes.samples import multiple_of, tried_samples
from nanoloom.sizes.steps import require_steps
from nanoloom.sizes.trace import Walks


@dataclass(frozen=True)
class Opening:
    """How sizes of open dimensions are compiled.

    why: each on its own; "" where they are compiled once.  multiple: of which heights
    and widths are; others are compiled on their own then.
    """

    why: str = ""
    multiple: int = 1


def opening(model: onnx_ir.Model, dims: Mapping[str, int]) -> Opening:
    """How a model's open dimensions are compiled, by its graph.

    dims: those that have numbers.  The model stays as it is.
    """
    names = [name for name in symbols(model) if name not in dims]
    if set(names) != {text for text in dim_texts(model) if text not in dims}:
        return Opening("a dimension is an expression of others")
    shapes = [x.shape for x in input_specs(model)]
    walks = Walks(
        lambda sample: bind(model, {**dims, **{n: sample[n] for n in names}}),
        OPERATORS.keys(),
    )
    reason = "it has too many dimensions"
    for samples in tried_samples(shapes, names):
        try:
            require_steps(model.graph, samples)
            open_values(walks, samples)
        except (Differs, Error) as error:
            reason = str(error)
        else:
            return Opening(multiple=multiple_of(samples))
    try:
        outputs = [x.name for x in model.graph.outputs]
        require_rows(walks, batch_of(shapes, names), outputs)
    except (Differs, Error) as error:
        return Opening(f"{reason}; {error}")
    return Opening()
