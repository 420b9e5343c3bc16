"""A chain of matrix products as an ONNX model: the file that every system is given."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from nanoloom_papers.reproduce.array_files import Array
from nanoloom_papers.reproduce.chains import Chain, Numbers

OPSET, IR_VERSION = 21, 10
ELEMENTS = {
    "f32": TensorProto.FLOAT,
    "mixed": TensorProto.FLOAT,
    "bf16": TensorProto.BFLOAT16,
    "bf16-flat": TensorProto.BFLOAT16,
    "int8": TensorProto.UINT8,
}


def onnx_model(chain: Chain, numbers: Numbers) -> onnx.ModelProto:
    """MatMul, Add and Relu; between QuantizeLinear and DequantizeLinear for int8."""
    drawing = Drawing(chain)
    value = "x"
    for index in range(len(numbers.layers)):
        make = drawing.quantized if chain.arithmetic == "int8" else drawing.layer
        value = make(index, value, numbers)
    drawing.nodes[-1].output[0] = "y"
    element = ELEMENTS[chain.arithmetic]
    ends = ((chain.rows, chain.widths[0]), (chain.rows, chain.widths[-1]))
    x, y = (
        helper.make_tensor_value_info(name, element, list(shape))
        for name, shape in zip("xy", ends, strict=True)
    )
    graph = helper.make_graph(
        drawing.nodes, "chain", [x, *drawing.inputs], [y], drawing.weights
    )
    opsets = [helper.make_opsetid("", OPSET)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)


def feeds(chain: Chain, numbers: Numbers) -> dict[str, Array]:
    """The model's inputs: the weights too where they are flat."""
    return numbers.arrays() if chain.arithmetic == "bf16-flat" else {"x": numbers.x}


class Drawing:
    """The graph while it is made."""

    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []

    def node(self, kind: str, name: str, *inputs: str) -> str:
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name=name))
        return name

    def constant(self, name: str, array: Array) -> str:
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def weight(self, name: str, array: Array) -> str:
        """A constant, or an input of the model where weights are flat."""
        if self.chain.arithmetic != "bf16-flat":
            return self.constant(name, array)
        element = ELEMENTS[self.chain.arithmetic]
        shape = list(array.shape)
        self.inputs.append(helper.make_tensor_value_info(name, element, shape))
        return name

    def layer(self, index: int, value: str, numbers: Numbers) -> str:
        """value @ w (+ b, ReLU)."""
        layer = numbers.layers[index]
        weight = self.weight(f"w{index}", layer.weight)
        value = self.node("MatMul", f"product{index}", value, weight)
        if layer.bias is not None:
            bias = self.weight(f"b{index}", layer.bias)
            value = self.node("Add", f"sum{index}", value, bias)
        if self.chain.activated:
            value = self.node("Relu", f"relu{index}", value)
        return value

    def quantized(self, index: int, value: str, numbers: Numbers) -> str:
        """Integers to integers, as quantizing tools write it."""
        layer = numbers.layers[index]
        before = numbers.layers[index - 1] if index else None
        scale, zero = (before.scale, before.zero) if before else (numbers.scale, 0)
        value = self.dequantized(f"x{index}", value, scale, np.uint8(zero))
        weight = self.dequantized(
            f"v{index}",
            self.constant(f"w{index}", layer.weight),
            layer.weight_scale,
            np.int8(0),
        )
        value = self.node("MatMul", f"product{index}", value, weight)
        if layer.bias is not None:
            bias = self.constant(f"b{index}", layer.bias)
            value = self.node("Add", f"sum{index}", value, bias)
        if self.chain.activated:
            value = self.node("Relu", f"relu{index}", value)
        parts = self.grid(f"y{index}", layer.scale, np.uint8(layer.zero))
        return self.node("QuantizeLinear", f"quantized{index}", value, *parts)

    def dequantized(
        self, name: str, value: str, scale: float, zero: np.uint8 | np.int8
    ) -> str:
        return self.node("DequantizeLinear", name, value, *self.grid(name, scale, zero))

    def grid(self, name: str, scale: float, zero: np.uint8 | np.int8) -> list[str]:
        """The names of a scale and a zero point."""
        return [
            self.constant(f"{name}_scale", np.array(scale, np.float32)),
            self.constant(f"{name}_zero", np.array(zero)),
        ]
