"""Layers of a binary network: those that count bits, and those that cannot."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import onnx_ir

from nanoloom.frontend.problems import Problem
from nanoloom.frontend.symbolic_dims import bind
from nanoloom.graph.sign_values import COMPARISONS
from nanoloom.graph.stage import SIGNS, bind_values, optimize
from nanoloom.inspect.diagnostics import some_values
from nanoloom.linalg.operators import OPERATORS

MAKE_SIGNS = {"Sign", *COMPARISONS}


@dataclass(frozen=True)
class BinaryLayers:
    """Products of signs.  counted: the names of those that count bits that differ.

    floats: those that are computed in floats, with the reason.
    """

    counted: tuple[str, ...] = ()
    floats: tuple[Problem, ...] = ()


def binary_layers(
    model: onnx_ir.Model, dims: Mapping[str, int], deciding: Collection[str] = ()
) -> BinaryLayers:
    """The layers of a model that compiles, for these dimensions; it stays as it is.

    deciding: inputs whose values decide about shapes.
    """
    if not any(node.op_type in MAKE_SIGNS for node in model.graph.all_nodes()):
        return BinaryLayers()
    bound = bind(model, dims)
    bind_values(bound, some_values(bound, deciding))
    reasons: Mapping[str, str] = optimize(bound, OPERATORS.keys()).meta[SIGNS]
    return BinaryLayers(
        tuple(name for name, why in reasons.items() if not why),
        tuple(Problem(name, why, "") for name, why in reasons.items() if why),
    )
