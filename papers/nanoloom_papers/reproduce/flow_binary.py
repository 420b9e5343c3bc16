"""The binary layers of the dataflow paper's Figure 9: ResNet's 3x3 convolutions.

    s = x >= 0 ? 1 : -1;  y = conv(s, w)       w of 1 and -1

Beside each, the same layer in 8-bit integers, as the networks of Figure 8 have it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from nanoloom_papers.reproduce.flow_networks import (
    Drawing,
    Network,
    convolved,
    model_of,
)

SEED = 1


@dataclass(frozen=True)
class BinaryLayer:
    """Channels, of the image and of the result, and the side of the image."""

    channels: int
    side: int

    @property
    def name(self) -> str:
        return f"{self.channels} channels, {self.side}x{self.side}"


LAYERS = (
    BinaryLayer(64, 56), BinaryLayer(128, 28), BinaryLayer(256, 14), BinaryLayer(512, 7)
)  # fmt: skip
QUICK = (BinaryLayer(16, 6),)


def binary(layer: BinaryLayer) -> Network:
    """The layer of signs: its sums are whole numbers."""
    count, side = layer.channels, layer.side
    random = np.random.default_rng(SEED)
    image = random.standard_normal((count, side, side), np.float32)
    weight = np.where(random.standard_normal((count, count, 3, 3)) > 0, 1, -1)
    signs = np.pad(np.where(image >= 0, 1.0, -1.0), ((0, 0), (1, 1), (1, 1)))
    value = convolved(signs, weight, 1).astype(np.float64)
    numbers = {"zero": 0, "one": 1, "minus": -1}
    held = {name: np.float32(number) for name, number in numbers.items()}
    held |= {"w": weight.astype(np.float32)}
    nodes = [
        helper.make_node("GreaterOrEqual", ["image", "zero"], ["positive"]),
        helper.make_node("Where", ["positive", "one", "minus"], ["signs"]),
        helper.make_node("Conv", ["signs", "w"], ["y"], "conv", pads=[1] * 4),
    ]
    shape, floats = (1, count, side, side), TensorProto.FLOAT
    ends = (
        helper.make_tensor_value_info(name, floats, shape) for name in ("image", "y")
    )
    first, last = ends
    tensors = [numpy_helper.from_array(np.asarray(v), k) for k, v in held.items()]
    graph = helper.make_graph(nodes, "signs", [first], [last], tensors)
    opsets = [helper.make_opsetid("", 19)]
    model: onnx.ModelProto = helper.make_model(
        graph, opset_imports=opsets, ir_version=9
    )
    return Network(model, image[None], value[None], 0.0)


def integers(layer: BinaryLayer) -> Network:
    """The same layer of bytes."""
    net, shape = Drawing(), (layer.channels, layer.side, layer.side)
    image = net.random.integers(0, 256, shape).astype(np.float64) / 256
    made = net.conv(net.quantized("image", image, 1 / 256), layer.channels, 3)
    model = model_of("bytes", net, shape, made)
    return Network(model, image[None].astype(np.float32), made.value[None], 0.0)
