"""Images that are one axis with their pixels have no channels in front of it."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from nanoloom.fusion.layouts.layout import FIRST, LAST, Layout, blocks
from nanoloom.ir import mlir
from tests.fusion.layouts.test_networks import planned
from tests.linalg.harness import run

Shape = tuple[int, ...]


def rows(shape: Shape, made: Shape, other: Shape) -> onnx.ModelProto:
    """Channels are turned behind all others, which are other axes then.

    x[b, c, ...] -> y[b, ..., c] -> z[made] + other
    """
    order = [0, *range(2, len(shape)), 1]
    nodes = [
        helper.make_node("Transpose", ["x"], ["turned"], perm=order),
        helper.make_node("Reshape", ["turned", "made"], ["rows"]),
        helper.make_node("Add", ["rows", "other"], ["y"]),
    ]
    given = [("x", shape), ("other", other)]
    inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in given]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    sizes = numpy_helper.from_array(np.array(made), "made")
    graph = helper.make_graph(nodes, "rows", inputs, [output], [sizes])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])


@pytest.mark.parametrize(
    ("shape", "made", "other", "moves"),
    [
        ((2, 2, 80), (160, 1, 2), (5, 2), False),
        ((2, 4, 8, 10), (160, 1, 1, 4), (5, 3, 4), False),
        ((3, 8, 5, 4), (15, 4, 8), (4, 8), False),
        ((3, 8, 5, 4), (3, 20, 8), (20, 8), True),
        ((1, 8, 5, 4), (20, 1, 8), (6, 8), True),
    ],
)
@pytest.mark.parametrize("only", [None, FIRST, blocks(2)], ids=str)
def test_numbers(
    shape: Shape, made: Shape, other: Shape, moves: bool, only: Layout | None
) -> None:
    values = np.random.default_rng(0).integers(-9, 10, np.prod(shape))
    feeds = {
        "x": values.reshape(shape).astype(np.float32),
        "other": np.arange(np.prod(other), dtype=np.float32).reshape(other),
    }
    with mlir.context():
        module, plan = planned(rows(shape, made, other), only)
        plan.apply()
        assert module.module.operation.verify()
        (got,) = run(module, feeds)
    turned = np.moveaxis(feeds["x"], 1, -1).reshape(made)
    np.testing.assert_array_equal(got, turned + feeds["other"])
    assert moves or set(plan.chosen.values()) <= {LAST}
    assert only is None or not moves or only in plan.chosen.values()
