"""Layers of a quantized network that are computed in floats, before it is compiled."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import onnx_ir

from nanoloom.explain.float_layers import float_layers_in, is_quantized
from nanoloom.frontend.problems import Problem
from nanoloom.frontend.symbolic_dims import bind
from nanoloom.graph.stage import bind_values, optimize
from nanoloom.inspect.diagnostics import some_values
from nanoloom.linalg.operators import OPERATORS


def float_layers(
    model: onnx_ir.Model, dims: Mapping[str, int], deciding: Collection[str] = ()
) -> tuple[Problem, ...]:
    """The layers of a model that compiles, for these dimensions; it stays as it is.

    deciding: inputs whose values decide about shapes.
    """
    if not is_quantized(model):
        return ()
    bound = bind(model, dims)
    bind_values(bound, some_values(bound, deciding))
    return float_layers_in(optimize(bound, OPERATORS.keys()))
