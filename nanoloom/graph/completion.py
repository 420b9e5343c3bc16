"""Shapes of outputs that ONNX defines but its inference leaves open."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import onnx_ir as ir

from nanoloom.graph.types import is_static, shape_of

Shape = tuple[int, ...]
Rule = Callable[[ir.Node, Shape], Shape | None]
ML = "ai.onnx.ml"


def complete(node: ir.Node) -> None:
    """Give the first output the shape that its operator's rule says, if it has none."""
    rule = RULES.get((node.domain, node.op_type))
    source, made = node.inputs[0] if node.inputs else None, node.outputs[0]
    if rule is None or source is None or not is_static(source):
        return
    shape = rule(node, shape_of(source))
    if shape is not None:
        made.shape = ir.Shape(shape)


def unpooled(node: ir.Node, _: Shape) -> Shape | None:
    """MaxUnpool: what its third input says."""
    given = node.inputs[2] if len(node.inputs) > 2 else None
    if given is None or given.const_value is None:
        return None
    return tuple(int(size) for size in given.const_value.numpy())


def same(_: ir.Node, shape: Shape) -> Shape:
    return shape


def targets(attribute: str) -> Rule:
    """[rows, number of targets], for operators that give each row some numbers."""

    def rule(node: ir.Node, shape: Shape) -> Shape:
        rows = shape[0] if len(shape) > 1 else 1
        count = node.attributes.get(attribute)
        return rows, count.as_int() if count is not None else 1

    return rule


def joined(node: ir.Node, shape: Shape) -> Shape | None:
    """FeatureVectorizer: the inputs' columns side by side."""
    shapes = [shape_of(x) for x in node.inputs if x is not None and is_static(x)]
    if len(shapes) != len(node.inputs):
        return None
    rows = shape[0] if len(shape) > 1 else 1
    return rows, sum(prod(s) // max(rows, 1) for s in shapes)


RULES: dict[tuple[str, str], Rule] = {
    ("", "MaxUnpool"): unpooled,
    (ML, "FeatureVectorizer"): joined,
    (ML, "Imputer"): same,
    (ML, "LinearRegressor"): targets("targets"),
    (ML, "Normalizer"): same,
    (ML, "SVMRegressor"): targets("n_targets"),
    (ML, "Scaler"): same,
}
