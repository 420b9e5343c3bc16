"""Whether open dimensions of a model are sizes at run time, by its graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import onnx_ir

from nanoloom.errors import Error
from nanoloom.frontend.inputs import input_specs
from nanoloom.frontend.symbolic_dims import bind, dim_texts, symbols
from nanoloom.linalg.operators import OPERATORS
from nanoloom.sizes.batch_independence import batch_of, require_rows
from nanoloom.sizes.dynamic_refusal import NotDynamic
from nanoloom.sizes.graph import open_values
from nanoloom.sizes.recurrent_batch import require_steps
from nanoloom.sizes.sample_walk import Walks
from nanoloom.sizes.samples import multiple_of, tried_samples


@dataclass(frozen=True)
class DynamicSizes:
    """How sizes of open dimensions are compiled.

    why: each on its own; "" where they are compiled once.  multiple: of which heights
    and widths are; others are compiled on their own then.
    """

    why: str = ""
    multiple: int = 1


def dynamic_sizes(model: onnx_ir.Model, dims: Mapping[str, int]) -> DynamicSizes:
    """How a model's open dimensions are compiled, by its graph.

    dims: those that have numbers.  The model stays as it is.
    """
    names = [name for name in symbols(model) if name not in dims]
    if set(names) != {text for text in dim_texts(model) if text not in dims}:
        return DynamicSizes("a dimension is an expression of others")
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
        except (NotDynamic, Error) as error:
            reason = str(error)
        else:
            return DynamicSizes(multiple=multiple_of(samples))
    try:
        outputs = [x.name for x in model.graph.outputs]
        require_rows(walks, batch_of(shapes, names), outputs)
    except (NotDynamic, Error) as error:
        return DynamicSizes(f"{reason}; {error}")
    return DynamicSizes()
