"""Element types and shapes of what operators of ai.onnx.ml give, at every version.

ONNX infers them from some version on, if at all; version 1 has none.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import onnx_ir as ir

from nanoloom.graph.types import is_static, shape_of

DOMAIN = "ai.onnx.ml"
Shape = tuple[int, ...]
Made = tuple[ir.DataType | None, Shape]  # None: of the first input
Rule = Callable[[ir.Node, Shape], "list[Made] | None"]
FLOAT, INT64 = ir.DataType.FLOAT, ir.DataType.INT64


def complete(node: ir.Node) -> None:
    """Give the outputs the types that they have, and their shapes."""
    rule, x = RULES.get(node.op_type), node.inputs[0] if node.inputs else None
    if rule is None or node.domain != DOMAIN or x is None or not is_static(x):
        return
    for value, (dtype, shape) in zip(
        node.outputs, rule(node, shape_of(x)) or (), strict=False
    ):
        made = x.dtype if dtype is None else dtype
        if value.dtype is None and made is not None:
            value.type = ir.TensorType(made)
        value.shape = ir.Shape(shape)  # whatever the model declares


def attribute_size(node: ir.Node, *names: str) -> int:
    """The length of the first of these lists that the node has, 0 without any."""
    for name in names:
        attribute = node.attributes.get(name)
        if attribute is not None and attribute.value is not None:
            return len(attribute.value)
    return 0


def rows_of(shape: Shape) -> int:
    """A vector of features is one row."""
    return shape[0] if len(shape) > 1 else 1


def same(dtype: ir.DataType | None) -> Rule:
    return lambda _, shape: [(dtype, shape)]


def targets(attribute: str) -> Rule:
    """[rows, number of targets], for operators that give each row some numbers."""

    def rule(node: ir.Node, shape: Shape) -> list[Made]:
        count = node.attributes.get(attribute)
        return [(FLOAT, (rows_of(shape), count.as_int() if count is not None else 1))]

    return rule


def classes(node: ir.Node, shape: Shape) -> list[Made]:
    """A label and the scores of each row: one where no classes are named."""
    count = max(attribute_size(node, *CLASSES), 1)
    rows = rows_of(shape)
    return [(INT64, (rows,)), (FLOAT, (rows, count))]


def pairs(node: ir.Node, shape: Shape) -> list[Made]:
    """SVMClassifier: without probabilities of classes, a score for each pair of them.

    Two classes have one each, the second the first one's with the other sign.
    """
    made, count = classes(node, shape), attribute_size(node, *CLASSES)
    among = attribute_size(node, "vectors_per_class") and count > 2
    if among and not attribute_size(node, "prob_a"):
        return [made[0], (FLOAT, (rows_of(shape), count * (count - 1) // 2))]
    return made


CLASSES = ("classlabels_ints", "classlabels_int64s")


def joined(node: ir.Node, shape: Shape) -> list[Made] | None:
    """FeatureVectorizer: the inputs' columns side by side."""
    shapes = [shape_of(x) for x in node.inputs if x is not None and is_static(x)]
    if len(shapes) != len(node.inputs):
        return None
    rows = rows_of(shape)
    return [(FLOAT, (rows, sum(prod(s) // max(rows, 1) for s in shapes)))]


def extracted(node: ir.Node, shape: Shape) -> list[Made] | None:
    """ArrayFeatureExtractor: as many columns as there are indices."""
    indices = node.inputs[1]
    if indices is None or not is_static(indices):
        return None
    rows = shape[:-1] if len(shape) > 1 else (1,)
    return [(None, (*rows, prod(shape_of(indices))))]


def one_hot(node: ir.Node, shape: Shape) -> list[Made]:
    return [(FLOAT, (*shape, attribute_size(node, "cats_int64s")))]


def encoded(node: ir.Node, shape: Shape) -> list[Made]:
    """LabelEncoder: of the type of its values."""
    tensor = node.attributes.get("values_tensor")
    if tensor is not None:
        return [(tensor.as_tensor().dtype, shape)]
    is_float = "values_floats" in node.attributes
    return [(FLOAT if is_float else INT64, shape)]


RULES: dict[str, Rule] = {
    "ArrayFeatureExtractor": extracted,
    "Binarizer": same(None),
    "FeatureVectorizer": joined,
    "Imputer": same(None),
    "LabelEncoder": encoded,
    "LinearClassifier": classes,
    "LinearRegressor": targets("targets"),
    "Normalizer": same(FLOAT),
    "OneHotEncoder": one_hot,
    "SVMClassifier": pairs,
    "SVMRegressor": lambda _, shape: [(FLOAT, (rows_of(shape), 1))],
    "Scaler": same(FLOAT),
    "TreeEnsembleClassifier": classes,
    "TreeEnsembleRegressor": targets("n_targets"),
}
