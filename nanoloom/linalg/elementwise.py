"""Operators that compute each element of the result from one element of each input."""

from __future__ import annotations

from collections.abc import Callable

from nanoloom.linalg.builder import Builder
from nanoloom.linalg.node import Node
from nanoloom.linalg.scalar import Scalar
from nanoloom.linalg.tensor import Tensor

Formula = Callable[..., Scalar]


def simple(formula: Formula) -> Callable[[Builder, Node], Tensor]:
    """A lowering without attributes: formula on the (broadcast) inputs' elements."""

    def lower(b: Builder, node: Node) -> Tensor:
        inputs = [x for x in node.inputs if x is not None]
        return b.elementwise(formula, *inputs, dtype=node.output_dtypes[0])

    return lower


OPERATORS = {
    "Add": simple(lambda x, y: x + y),
    "Sub": simple(lambda x, y: x - y),
    "Mul": simple(lambda x, y: x * y),
    "Div": simple(lambda x, y: x / y),
    "Relu": simple(lambda x: x.maximum(0)),
    "Exp": simple(lambda x: x.math("exp")),
    "Tanh": simple(lambda x: x.math("tanh")),
    "Erf": simple(lambda x: x.math("erf")),
    "Sqrt": simple(lambda x: x.math("sqrt")),
}
