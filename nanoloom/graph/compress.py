"""Compress with a condition known now: a Gather of the chosen places."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from nanoloom.graph.splice import substitute

OPSET = 13  # of the operators that take its place


def select(graph: ir.Graph, node: ir.Node) -> None:
    """compress(x, condition) -> gather(x, nonzero(condition))."""
    x, condition = node.inputs
    assert condition is not None
    assert condition.const_value is not None
    chosen = np.flatnonzero(condition.const_value.numpy()).astype(np.int64)
    places = ir.Value(
        name=f"{node.name}/places",
        shape=ir.Shape(chosen.shape),
        type=ir.TensorType(ir.DataType.INT64),
        const_value=ir.Tensor(chosen),
    )
    graph.register_initializer(places)
    made: list[ir.Node] = []
    axis = node.attributes.get("axis")
    if axis is None:
        flat = ir.Value(
            name=f"{node.name}/flat",
            shape=ir.Shape([1]),
            type=ir.TensorType(ir.DataType.INT64),
            const_value=ir.Tensor(np.array([-1], np.int64)),
        )
        graph.register_initializer(flat)
        made.append(ir.Node("", "Reshape", [x, flat], version=OPSET))
        made[0].outputs[0].name = f"{node.name}/row"
        x = made[0].outputs[0]
    along = ir.AttrInt64("axis", axis.as_int() if axis is not None else 0)
    made.append(ir.Node("", "Gather", [x, places], [along], version=OPSET))
    made[-1].outputs[0].name = f"{node.name}/chosen"
    for i, inner in enumerate(made):
        inner.name = f"{node.name}/{i}"
    graph.insert_after(node, made)
    substitute(graph, node, [made[-1].outputs[0]])
