"""Networks of one block each in the sizes that fill a kernel's temporaries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
U8, S8 = TensorProto.UINT8, TensorProto.INT8


@dataclass
class Network:
    """A model being made."""

    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(8))
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    weights: list[onnx.TensorProto] = field(default_factory=list)
    inputs: list[onnx.ValueInfoProto] = field(default_factory=list)

    def input(self, *shape: int, kind: int = FLOAT) -> str:
        name = f"x{len(self.inputs)}"
        self.inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return name

    def constant(self, array: Any) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def weight(self, *shape: int) -> str:
        spread = np.sqrt(2 / max(1, np.prod(shape[1:])))
        return self.constant((self.rng.normal(size=shape) * spread).astype(np.float32))

    def add(self, op: str, *inputs: str, outputs: int = 1, **attributes: Any) -> str:
        """A node; gives its last output's name."""
        names = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), names, **attributes))
        return names[-1]

    def model(self, *outputs: str, kind: int = FLOAT) -> onnx.ModelProto:
        made = [helper.make_tensor_value_info(o, kind, None) for o in outputs]
        graph = helper.make_graph(self.nodes, "g", self.inputs, made, self.weights)
        opset = [helper.make_opsetid("", 21)]
        return helper.make_model(graph, opset_imports=opset, ir_version=10)

    def conv(
        self, x: str, shape: tuple[int, ...], stride: int = 1, group: int = 1
    ) -> str:
        """A convolution that keeps the image's size, its bias and a Relu."""
        made = self.add(
            "Conv", x, self.weight(*shape), self.weight(shape[0]), group=group,
            kernel_shape=list(shape[2:]), strides=[stride] * 2,
            pads=[shape[-1] // 2] * 4,
        )  # fmt: skip
        return self.add("Relu", made)


def residual() -> onnx.ModelProto:
    """The beginning of a residual network, and a block of its end."""
    net = Network()
    x = net.conv(net.input(1, 3, 224, 224), (64, 3, 7, 7), 2)
    x = net.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    y = net.conv(net.conv(x, (64, 64, 3, 3)), (64, 64, 3, 3))
    y = net.conv(net.add("Add", x, y), (128, 64, 3, 3), 2)
    z = net.conv(net.input(1, 256, 14, 14), (512, 256, 3, 3), 2)
    z = net.add("GlobalAveragePool", net.conv(z, (512, 512, 3, 3)))
    return net.model(y, z)


def mobile() -> onnx.ModelProto:
    """Inverted residuals: products and depthwise convolutions of many channels."""
    net = Network()
    x = net.conv(net.input(1, 3, 224, 224), (32, 3, 3, 3), 2)
    x = net.conv(net.conv(x, (32, 1, 3, 3), group=32), (96, 32, 1, 1))
    x = net.conv(net.conv(x, (96, 1, 3, 3), 2, 96), (24, 96, 1, 1))
    y = net.conv(net.input(1, 160, 7, 7), (960, 160, 1, 1))
    y = net.conv(net.conv(y, (960, 1, 3, 3), group=960), (160, 960, 1, 1))
    return net.model(x, y)


def attention() -> onnx.ModelProto:
    """Twelve heads with a mask, and the feed-forward block with its norm."""
    net = Network()
    q, v = net.input(1, 12, 197, 64), net.input(1, 12, 512, 64)
    k, mask = net.input(1, 12, 64, 512), net.input(1, 1, 197, 512)
    scores = net.add("Add", net.add("MatMul", q, k), mask)
    found = net.add("MatMul", net.add("Softmax", scores, axis=-1), v)
    rows = net.input(1, 128, 768)
    norm = net.add("LayerNormalization", rows, net.weight(768), net.weight(768))
    wide = net.add("Gelu", net.add("MatMul", norm, net.weight(768, 3072)))
    return net.model(found, net.add("MatMul", wide, net.weight(3072, 768)))


def flat() -> onnx.ModelProto:
    """Products of what is not known beforehand, and of rows longer than a cache."""
    net = Network()
    square = net.add("MatMul", net.input(1024, 1024), net.input(1024, 1024))
    long = net.add("MatMul", net.input(300, 4096), net.input(4096, 200))
    turned = net.add("Transpose", net.input(700, 1000), perm=[1, 0])
    ragged = net.add("MatMul", turned, net.input(700, 333))
    packed = net.add("MatMul", net.input(384, 4096), net.weight(4096, 512))
    return net.model(square, long, ragged, packed)


def integers() -> onnx.ModelProto:
    """8-bit products with a constant and with an input."""
    net = Network()
    weight = net.constant(net.rng.integers(-127, 128, (2048, 512)).astype(np.int8))
    zero = net.constant(np.uint8(128))
    x = net.input(512, 2048, kind=U8)
    packed = net.add("MatMulInteger", x, weight, zero)
    ragged = net.add(
        "MatMulInteger", net.input(300, 1000, kind=U8), net.input(1000, 700, kind=S8)
    )
    return net.model(packed, ragged, kind=TensorProto.INT32)


def recurrent() -> onnx.ModelProto:
    net = Network()
    x = net.input(20, 4, 256)
    given = (net.weight(1, 4 * 512, 256), net.weight(1, 4 * 512, 512))
    return net.model(net.add("LSTM", x, *given, outputs=3, hidden_size=512))


def sorting() -> onnx.ModelProto:
    """What keeps whole rows: sorted ones, sums along them, and a long softmax."""
    net = Network()
    x = net.input(8, 30000)
    many, axis = net.constant(np.int64([200])), net.constant(np.int64(1))
    first = net.add("TopK", x, many, outputs=2, axis=-1).replace("_1", "_0")
    sums = net.add("CumSum", x, axis)
    return net.model(first, sums, net.add("Softmax", net.input(2, 200000), axis=-1))


NETWORKS: dict[str, Callable[[], onnx.ModelProto]] = {
    made.__name__: made
    for made in (residual, mobile, attention, flat, integers, recurrent, sorting)
}
