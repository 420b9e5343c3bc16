"""Small networks with random weights, as exporters write them, for ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WIDTH, HEADS, INNER, WORDS, LONGEST = 32, 4, 64, 50, 16


class Network:
    """Nodes and weights, written down one after the other."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def op(self, op_type: str, *inputs: str, **attributes: Any) -> str:
        name = f"{op_type}_{len(self.nodes)}"
        node = helper.make_node(op_type, inputs, [name], name=name, **attributes)
        self.nodes.append(node)
        return name

    def constant(self, array: Any) -> str:
        name = f"constant_{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.array(array), name))
        return name

    def number(self, number: float) -> str:
        return self.constant(np.float32(number))

    def weight(self, *shape: int, depth: int = 100) -> str:
        """depth: of a sum with it, so that results stay about 1."""
        array = self.random.standard_normal(shape) / np.sqrt(depth)
        return self.constant(array.astype(np.float32))

    def model(
        self, inputs: dict[str, tuple[int, list[Any]]], shape: list[Any], opset: int
    ) -> onnx.ModelProto:
        """The last node's output is the model's, y."""
        self.nodes[-1].output[0] = "y"
        given = [helper.make_tensor_value_info(n, *x) for n, x in inputs.items()]
        made = [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)]
        graph = helper.make_graph(self.nodes, "network", given, made, self.weights)
        imports = [helper.make_opsetid("", opset)]
        return helper.make_model(graph, opset_imports=imports, ir_version=8)

    def linear(self, x: str, inputs: int, outputs: int) -> str:
        made = self.op("MatMul", x, self.weight(inputs, outputs, depth=inputs))
        return self.op("Add", made, self.weight(outputs))

    def normalized(self, x: str) -> str:
        """As opsets before 17 have it."""
        moved = self.op("Sub", x, self.op("ReduceMean", x, axes=[-1]))
        variance = self.op(
            "ReduceMean", self.op("Pow", moved, self.number(2)), axes=[-1]
        )
        root = self.op("Sqrt", self.op("Add", variance, self.number(1e-5)))
        made = self.op("Mul", self.op("Div", moved, root), self.weight(WIDTH, depth=1))
        return self.op("Add", made, self.weight(WIDTH))

    def heads(self, x: str, order: list[int]) -> str:
        shape = self.constant([0, 0, HEADS, WIDTH // HEADS])
        return self.op("Transpose", self.op("Reshape", x, shape), perm=order)

    def gelu(self, x: str) -> str:
        erf = self.op("Erf", self.op("Div", x, self.number(np.sqrt(2))))
        made = self.op("Mul", x, self.op("Add", erf, self.number(1)))
        return self.op("Mul", made, self.number(0.5))


def encoder(opset: int = 14) -> onnx.ModelProto:
    """One layer as of BERT: ids, a mask and kinds of tokens, of any number."""
    net = Network(1)
    words = net.op("Gather", net.weight(WORDS, WIDTH, depth=1), "ids")
    kinds = net.op("Gather", net.weight(2, WIDTH, depth=1), "kinds")
    length = net.op("Gather", net.op("Shape", "ids"), net.constant(1), axis=0)
    end = net.op("Unsqueeze", length, net.constant([0]))
    every = net.constant(np.arange(LONGEST)[None])
    ids = net.op("Slice", every, net.constant([0]), end, net.constant([1]))
    places = net.op("Gather", net.weight(LONGEST, WIDTH, depth=1), ids)
    x = net.normalized(net.op("Add", net.op("Add", words, kinds), places))
    taken = net.op("Unsqueeze", "mask", net.constant([1, 2]))
    left = net.op("Sub", net.number(1), net.op("Cast", taken, to=TensorProto.FLOAT))
    mask = net.op("Mul", left, net.number(-10000))
    q = net.heads(net.linear(x, WIDTH, WIDTH), [0, 2, 1, 3])
    k = net.heads(net.linear(x, WIDTH, WIDTH), [0, 2, 3, 1])
    v = net.heads(net.linear(x, WIDTH, WIDTH), [0, 2, 1, 3])
    root = net.number(np.sqrt(WIDTH // HEADS))
    scores = net.op("Add", net.op("Div", net.op("MatMul", q, k), root), mask)
    made = net.op("MatMul", net.op("Softmax", scores, axis=-1), v)
    made = net.op("Transpose", made, perm=[0, 2, 1, 3])
    made = net.op("Reshape", made, net.constant([0, 0, WIDTH]))
    x = net.normalized(net.op("Add", net.linear(made, WIDTH, WIDTH), x))
    inner = net.gelu(net.linear(x, WIDTH, INNER))
    net.normalized(net.op("Add", net.linear(inner, INNER, WIDTH), x))
    shape = ["batch", "length"]
    inputs = dict.fromkeys(("ids", "mask", "kinds"), (TensorProto.INT64, shape))
    return net.model(inputs, [*shape, WIDTH], opset)


def convnet(opset: int = 13) -> onnx.ModelProto:
    """Convolutions, gates, pools and a classifier, of any number of images."""
    net = Network(2)

    def convolved(x: str, inputs: int, outputs: int, size: int, **options: Any) -> str:
        shape = (outputs, inputs, size, size)
        weight = net.weight(*shape, depth=inputs * size * size)
        return net.op("Conv", x, weight, net.weight(outputs), **options)

    pads = [1, 1, 1, 1]
    first = net.op("Relu", convolved("x", 3, 8, 3, pads=pads, strides=[2, 2]))
    second = convolved(first, 8, 8, 3, pads=pads)
    third = convolved(net.op("Relu", net.op("Add", second, first)), 8, 16, 1)
    gated = net.op("Mul", third, net.op("Sigmoid", third))
    pooled = net.op("MaxPool", gated, kernel_shape=[2, 2], strides=[2, 2])
    leaky = net.op("LeakyRelu", pooled, alpha=0.1)
    mean = net.op("AveragePool", leaky, kernel_shape=[3, 3], pads=pads)
    every = net.op("GlobalAveragePool", net.op("Concat", mean, pooled, axis=1))
    flat, weight = net.op("Flatten", every), net.weight(10, 32, depth=8)
    net.op("Softmax", net.op("Gemm", flat, weight, net.weight(10), transB=1), axis=-1)
    inputs = {"x": (TensorProto.FLOAT, ["n", 3, 12, 10])}
    return net.model(inputs, ["n", 10], opset)
