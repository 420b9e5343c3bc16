"""How each layer of a quantized model is computed, asked of the compiler's graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from nanoloom.explain.float_layers import NOT_QUANTIZED, layer_of
from nanoloom.frontend.symbolic_dims import bind, dims_from_inputs
from nanoloom.graph.quantization import BYTES, DOMAIN
from nanoloom.graph.stage import IN_FLOATS, optimize
from nanoloom.linalg.operators import OPERATORS
from nanoloom.quantization.report import FLOAT_RESULT, FLOATS, INTEGERS

Form = tuple[str, str]


def computed_forms(
    model: ir.Model, arrays: Mapping[str, np.ndarray[Any, Any]]
) -> dict[str, Form]:
    """By node: how it is computed, and why so; of those that have a form of their own.

    model: as `frontend.onnx.load` gives it.  arrays: the inputs of a call.
    """
    bound = bind(model, dims_from_inputs(model, arrays))
    optimized = optimize(bound, OPERATORS.keys())
    reasons: Mapping[str, str] = optimized.meta[IN_FLOATS]
    found: dict[str, Form] = {}
    for node in optimized.graph:
        name = node.name or ""
        if node.domain == DOMAIN:
            is_byte = node.outputs[0].dtype in BYTES
            found[name] = (INTEGERS, "") if is_byte else (FLOAT_RESULT, NOT_QUANTIZED)
        elif (problem := layer_of(node, reasons)) is not None:
            found[name] = (FLOATS, problem.reason)
    return found
