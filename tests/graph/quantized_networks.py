"""Small networks twice: of floats, and with quantization around every product."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from tests.linalg.bounds import sample

OPSET = 21
STEPS = 255  # of 8 bits


@dataclass
class Network:
    """Nodes in order.  ranges: of the quantized values; None builds the float form."""

    ranges: Mapping[str, tuple[float, float]] | None = None
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    held: dict[str, np.ndarray] = field(default_factory=dict)
    sites: list[str] = field(default_factory=list)

    def add(self, op: str, *inputs: str, **attributes: Any) -> str:
        name = f"{op}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name=name, **attributes))
        return name

    def constant(self, array: np.ndarray) -> str:
        name = f"constant_{len(self.held)}"
        self.held[name] = array
        return name

    def quantized(self, x: str) -> str:
        """x through uint8, if this is the quantized form."""
        number = len(self.sites)
        self.sites.append(x)
        if self.ranges is None:
            return x
        low, high = self.ranges[str(number)]
        step = np.float32((high - low) / STEPS)
        scale = self.constant(np.asarray(step))
        zero = self.constant(np.asarray(np.rint(-low / step), np.uint8))
        stored = self.add("QuantizeLinear", x, scale, zero)
        return self.add("DequantizeLinear", stored, scale, zero)

    def weight(self, array: np.ndarray) -> str:
        """[k, n], in the quantized form int8 with a scale for each column."""
        if self.ranges is None:
            return self.constant(array)
        step = (abs(array).max(axis=0) / 127).astype(np.float32)
        stored = self.constant(np.rint(array / step).astype(np.int8))
        return self.add("DequantizeLinear", stored, self.constant(step), axis=1)

    def linear(self, x: str, seed: int, depth: int, columns: int) -> str:
        """quantized(x) @ weight + bias."""
        w = sample(seed, (depth, columns), "float32") / np.float32(depth**0.5)
        bias = self.constant(sample(seed + 1, (columns,), "float32"))
        return self.add(
            "Add", self.add("MatMul", self.quantized(x), self.weight(w)), bias
        )

    def model(
        self, shape: Sequence[int], outputs: Sequence[str], inner: bool = False
    ) -> onnx.ModelProto:
        """Input x; inner: all quantized values are outputs too."""
        names = [*outputs, *(self.sites if inner else [])]
        graph = helper.make_graph(
            self.nodes,
            "network",
            [helper.make_tensor_value_info("x", 1, list(shape))],
            [onnx.ValueInfoProto(name=name) for name in names],
            [numpy_helper.from_array(x, name) for name, x in self.held.items()],
        )
        return helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10
        )


def both_forms(
    build: Callable[[Network], str], shape: Sequence[int]
) -> tuple[onnx.ModelProto, onnx.ModelProto]:
    """The float and the quantized model, with ranges of two seeded inputs."""
    plain = Network()
    last = build(plain)
    session = ReferenceEvaluator(plain.model(shape, [last], inner=True))
    ranges: dict[str, tuple[float, float]] = {}
    for seed in (71, 72):
        _, *seen = session.run(None, {"x": sample(seed, tuple(shape), "float32")})
        for number, values in enumerate(seen):
            low, high = ranges.get(str(number), (0.0, 0.0))
            array = np.asarray(values)
            ranges[str(number)] = min(low, array.min()), max(high, array.max())
    quantized = Network(ranges)
    end = build(quantized)
    return plain.model(shape, [last]), quantized.model(shape, [end])


def mlp(net: Network) -> str:
    """37 -> 64 -> 41 -> 19, Relu between, quantized at its end."""
    x = net.add("Relu", net.linear("x", 1, 37, 64))
    x = net.add("Relu", net.linear(x, 3, 64, 41))
    return net.quantized(net.linear(x, 5, 41, 19))


def tower(net: Network, layers: int) -> str:
    """Layers 37 -> 37 that are alike but for their weights, scales and zero points."""
    x = "x"
    for number in range(layers):
        x = net.linear(x, 31 + 2 * number, 37, 37)
    return net.quantized(x)


def heads(net: Network, x: str, order: Sequence[int]) -> str:
    """[2, 7, 24] as [2, 3, 7, 8] or another order of the dimensions."""
    split = net.constant(np.array([2, 7, 3, 8]))
    return net.add("Transpose", net.add("Reshape", x, split), perm=list(order))


def block(net: Network) -> str:
    """A transformer's block on [2, 7, 24]: three heads, Gelu, both residuals."""
    scale, shift = (net.constant(sample(s, (24,), "float32", 0.5, 1)) for s in (8, 9))
    x = net.add("LayerNormalization", "x", scale, shift)
    q, k, v = (net.linear(x, seed, 24, 24) for seed in (11, 13, 15))
    left = net.quantized(heads(net, q, (0, 2, 1, 3)))
    right = net.quantized(heads(net, k, (0, 2, 3, 1)))
    scores = net.add("MatMul", left, right)
    small = net.constant(np.asarray(8**-0.5, np.float32))
    shares = net.add("Softmax", net.add("Mul", scores, small), axis=-1)
    values = net.quantized(heads(net, v, (0, 2, 1, 3)))
    mixed = net.add("MatMul", net.quantized(shares), values)
    joined = net.add("Transpose", mixed, perm=[0, 2, 1, 3])
    flat = net.add("Reshape", joined, net.constant(np.array([2, 7, 24])))
    x = net.add("Add", net.linear(flat, 17, 24, 24), "x")
    y = net.add("LayerNormalization", x, scale, shift)
    y = net.add("Gelu", net.linear(y, 19, 24, 50))
    return net.add("Add", net.linear(y, 21, 50, 24), x)


def masked_attention(net: Network) -> str:
    """x softmax(x' x / 4 + mask) on [2, 40, 16]: every value between is quantized."""
    turned = net.add("Transpose", "x", perm=[0, 2, 1])
    scores = net.add("MatMul", net.quantized("x"), net.quantized(turned))
    four = net.constant(np.asarray(4, np.float32))
    mask = net.constant(sample(25, (40, 40), "float32"))
    small = net.add("Div", net.quantized(scores), four)
    shares = net.add("Softmax", net.add("Add", small, mask), axis=-1)
    return net.quantized(net.add("MatMul", net.quantized(shares), net.quantized("x")))
