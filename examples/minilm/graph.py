"""A list of ONNX nodes, written one call a node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
OPSET = 17  # the first with LayerNormalization, PyTorch's default for years
IR_VERSION = 8  # what PyTorch's exporter stamps on an opset 17 model

Dims = Sequence[str | int]


class Graph:
    """Nodes and initializers in the order they are added; values are their names."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []

    def node(
        self,
        operator: str,
        name: str,
        *inputs: str,
        output: str = "",
        **attributes: Any,
    ) -> str:
        """Add the node `name` and return its output, `<name>_output_0` by default."""
        output = output or f"{name}_output_0"
        self.nodes.append(
            helper.make_node(operator, inputs, [output], name=name, **attributes)
        )
        return output

    def constant(self, name: str, value: Any, dtype: type = np.float32) -> str:
        """Add a Constant node that holds `value` (a scalar or a list)."""
        tensor = numpy_helper.from_array(np.array(value, dtype))
        return self.node("Constant", name, value=tensor)

    def weight(self, name: str, value: NDArray[Any]) -> str:
        """Add `value` as the initializer `name`."""
        array = np.ascontiguousarray(value)
        self.initializers.append(numpy_helper.from_array(array, name))
        return name

    def save(
        self, path: Path, inputs: Mapping[str, Dims], outputs: Mapping[str, Dims]
    ) -> Path:
        """Check and write the model: int64 `inputs`, float32 `outputs`, by name."""
        graph = helper.make_graph(
            self.nodes,
            "main_graph",
            [helper.make_tensor_value_info(n, INT64, d) for n, d in inputs.items()],
            [helper.make_tensor_value_info(n, FLOAT, d) for n, d in outputs.items()],
            self.initializers,
        )
        model = helper.make_model(
            graph,
            producer_name="nanoloom-minilm",
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
        )
        onnx.checker.check_model(model, full_check=True)
        onnx.save(model, path)
        return path
