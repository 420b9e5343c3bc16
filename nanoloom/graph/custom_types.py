"""Element types and shapes of what operators give that ONNX does not know."""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir

from nanoloom.graph.types import is_static, shape_of

Rule = Callable[[ir.Node], "list[tuple[ir.DataType, tuple[int, ...]]]"]
# Functions of elements that ONNX does not have (nanoloom/linalg/special/).
SPECIAL = (
    "Erfc", "Erfcx", "ErfInv", "Ndtr", "Ndtri", "LogNdtr", "Lgamma",
    "Digamma", "Polygamma", "I0", "I0e", "I1", "I1e",
)  # fmt: skip


def like_input(node: ir.Node) -> list[tuple[ir.DataType, tuple[int, ...]]]:
    """Of a function of elements."""
    (given,) = node.inputs
    assert given is not None and given.dtype is not None
    return [(given.dtype, shape_of(given))]


RULES: dict[tuple[str, str], Rule] = {("nanoloom", op): like_input for op in SPECIAL}


def complete(node: ir.Node) -> None:
    """Give the outputs their types once the inputs have numbers for sizes."""
    rule = RULES.get((node.domain, node.op_type))
    known = (x is None or (x.dtype is not None and is_static(x)) for x in node.inputs)
    if rule is None or not all(known):
        return
    for value, (dtype, shape) in zip(node.outputs, rule(node), strict=False):
        value.type, value.shape = ir.TensorType(dtype), ir.Shape(shape)
