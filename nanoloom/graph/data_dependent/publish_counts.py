"""The numbers of a model's outputs, as more outputs of the program."""

from __future__ import annotations

import onnx_ir as ir

from nanoloom.graph.data_dependent.count import counts_of
from nanoloom.graph.unique_names import Names
from nanoloom.interface.data_dependent_outputs import number_name


def publish(graph: ir.Graph, names: Names) -> None:
    """Behind the outputs: how much of each counted axis is meant, int64 [1]."""
    for output in list(graph.outputs):
        for axis, count in counts_of(output).items():
            name = number_name(axis, output.name or "", count.where)
            node = ir.Node("", "Identity", [count.value], name=names.node(name))
            (made,) = node.outputs
            made.name = names.value(name)
            made.type, made.shape = ir.TensorType(ir.DataType.INT64), ir.Shape([1])
            graph.append(node)
            graph.outputs.append(made)
