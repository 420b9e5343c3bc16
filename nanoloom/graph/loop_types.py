"""Types of what bodies of loops are given, and of what a Loop gives."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from nanoloom.graph import signatures
from nanoloom.graph.types import shape_of


def like(formal: ir.Value, node: ir.Node, index: int, drop: int | None = None) -> None:
    """Type a body's input like what comes in from outside, without axis `drop`."""
    actual = signatures.static_input(node, index)
    shape = list(shape_of(actual))
    if drop is not None:
        del shape[drop]
    formal.type, formal.shape = actual.type, ir.Shape(shape)
    formal.meta["outer"] = (node, index)


def type_loop(node: ir.Node, body: ir.Graph) -> None:
    """Types of a Loop body's inputs: trip number, condition, what is carried."""
    for formal, dtype in zip(body.inputs, (np.int64, np.bool_), strict=False):
        formal.type = ir.TensorType(ir.DataType.from_numpy(np.dtype(dtype)))
    for i, formal in enumerate(body.inputs[2:], start=2):
        like(formal, node, i)


def set_loop_outputs(node: ir.Node, body: ir.Graph, trips: int | None) -> None:
    carried = len(node.inputs) - 2
    for i, (value, inner) in enumerate(
        zip(node.outputs, body.outputs[1:], strict=True)
    ):
        value.type, value.shape = inner.type, inner.shape
        if i >= carried:
            assert trips is not None
            value.shape = ir.Shape([max(trips, 0), *shape_of(inner)])
