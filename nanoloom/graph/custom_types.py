"""Element types and shapes of what operators give that ONNX does not know."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from nanoloom.graph.types import is_static, shape_of

Rule = Callable[[ir.Node], "list[tuple[ir.DataType, tuple[int, ...]]]"]
# Functions of elements that ONNX does not have (nanoloom/linalg/special/).
SPECIAL = (
    "Atan2", "Digamma", "Erfc", "Erfcx", "ErfInv", "Exp2", "Expm1", "I0", "I0e", "I1",
    "I1e", "Lgamma", "Log10", "Log1p", "Log2", "LogNdtr", "Ndtr", "Ndtri", "Polygamma",
)  # fmt: skip


def broadcast(node: ir.Node) -> list[tuple[ir.DataType, tuple[int, ...]]]:
    """Of a function of elements."""
    given = [x for x in node.inputs if x is not None]
    assert given[0].dtype is not None
    return [(given[0].dtype, np.broadcast_shapes(*map(shape_of, given)))]


def bit_cast(node: ir.Node) -> list[tuple[ir.DataType, tuple[int, ...]]]:
    """Of the type that the node names, as wide as its input's."""
    (given,) = node.inputs
    assert given is not None
    return [(ir.DataType(node.attributes["to"].as_int()), shape_of(given))]


RULES: dict[tuple[str, str], Rule] = {("nanoloom", op): broadcast for op in SPECIAL}
RULES["nanoloom", "BitCast"] = bit_cast


def complete(node: ir.Node) -> None:
    """Give the outputs their types once the inputs have numbers for sizes."""
    rule = RULES.get((node.domain, node.op_type))
    known = (x is None or (x.dtype is not None and is_static(x)) for x in node.inputs)
    if rule is None or not all(known):
        return
    for value, (dtype, shape) in zip(node.outputs, rule(node), strict=False):
        value.type, value.shape = ir.TensorType(dtype), ir.Shape(shape)
