"""The networks of the dataflow paper's Figure 8 in int8, and what they compute exactly.

    u8 -> DequantizeLinear -> Conv (s8 weights, per channel) -> Relu -> QuantizeLinear

Weights are seeded, images of one channels-first picture.  Every scale is a power of two
and every sum a whole number below 2^24 of its units, so that any way of computing, in
integers or in f32, arrives at the same numbers if it rounds halves to even, as ONNX
says.  Some peers round some of them up: a network leaves room for that.  Weights have 7
bits, as quantizers choose for machines whose products of bytes saturate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from nanoloom_papers.reproduce.array_files import Array

LARGEST_WEIGHT = 63
CLASSES = 1000
UNSIGNED, MIDDLE = 255, 128


@dataclass(frozen=True)
class Made:
    """A quantized tensor: its name as floats, what they are, the step between them."""

    name: str
    value: Array  # float64, channels first
    scale: float


@dataclass(frozen=True)
class Network:
    """A model, its input, what comes out of it, and how far each number may be off."""

    model: onnx.ModelProto
    image: Array
    value: Array
    allowed: float


@dataclass
class Drawing:
    """A network while it is drawn: nodes, and their numbers beside them.

    part: the channels are so many times fewer than the network's.
    """

    part: int = 1
    random: np.random.Generator = field(
        default_factory=lambda: np.random.default_rng(0)
    )
    nodes: list[onnx.NodeProto] = field(default_factory=list[onnx.NodeProto])
    held: dict[str, Array] = field(default_factory=dict[str, Array])

    # ---- words of networks

    def conv(
        self, x: Made, filters: int, size: int, stride: int = 1, *, relu: bool = True
    ) -> Made:
        """A convolution with its bias, padded so that the image keeps its size."""
        count, pad = self.channels(filters), size // 2
        weight = self.weights((count, len(x.value), size, size))
        made = convolved(
            np.pad(x.value, ((0, 0), (pad, pad), (pad, pad))), weight, stride
        )
        words = {"kernel_shape": [size] * 2, "strides": [stride] * 2, "pads": [pad] * 4}
        return self.product("Conv", x, weight, made, relu=relu, **words)

    def dense(self, x: Made, columns: int, *, relu: bool = True) -> Made:
        """A product with all numbers of a tensor."""
        flat = self.shaped("Flatten", x, x.value.reshape(-1))
        weight = self.weights((columns, flat.value.size))
        made = weight.astype(np.float32) @ flat.value.astype(np.float32)
        return self.product("Gemm", flat, weight, made, relu=relu, transB=1)

    def normalized(self, x: Made) -> Made:
        """A normalization in front of a convolution: a factor and a sum, then Relu."""
        shape = (len(x.value), 1, 1)
        factor = 2.0 ** self.random.integers(-1, 1, shape)
        shift = self.random.integers(-16, 17, shape) * x.scale
        scaled = self.node("Mul", x.name, self.constant(factor.astype(np.float32)))
        moved = self.node("Add", scaled, self.constant(shift.astype(np.float32)))
        value = np.maximum(x.value * factor + shift, 0)
        return self.quantized(self.node("Relu", moved), value, signed=False)

    def add(self, x: Made, y: Made) -> Made:
        """A residual sum and its Relu."""
        value = np.maximum(x.value + y.value, 0)
        name = self.node("Relu", self.node("Add", x.name, y.name))
        return self.quantized(name, value, signed=False)

    def concat(self, x: Made, y: Made) -> Made:
        """Both by channels, in the larger step."""
        value = np.concatenate([x.value, y.value])
        return self.quantized(self.node("Concat", x.name, y.name, axis=1), value)

    def largest(self, x: Made, size: int, stride: int) -> Made:
        pad = (size - 1) // 2
        around = np.pad(
            x.value, ((0, 0), (pad, pad), (pad, pad)), constant_values=-np.inf
        )
        value = windows(around, size, stride).max((-2, -1))
        words = {"kernel_shape": [size] * 2, "strides": [stride] * 2, "pads": [pad] * 4}
        return self.shaped("MaxPool", x, value, **words)

    def average(self, x: Made) -> Made:
        """Of 2x2 pixels."""
        value = windows(x.value, 2, 2).mean((-2, -1))
        words = {"kernel_shape": [2, 2], "strides": [2, 2]}
        return self.shaped("AveragePool", x, value, **words)

    def mean(self, x: Made) -> Made:
        """Of all pixels."""
        value = x.value.mean((1, 2), keepdims=True)
        return self.shaped("GlobalAveragePool", x, value)

    # ---- what they are made of

    def channels(self, count: int) -> int:
        return max(4, count // self.part)

    def weights(self, shape: tuple[int, ...]) -> Array:
        bound = LARGEST_WEIGHT
        return self.random.integers(-bound, bound + 1, shape, np.int8)

    def product(
        self,
        kind: str,
        x: Made,
        weight: Array,
        sums: Array,
        *,
        relu: bool,
        **words: Any,
    ) -> Made:
        """A sum of products with its bias; weights have a step for every filter."""
        count = len(weight)
        step = 2.0 ** -round(math.log2(LARGEST_WEIGHT * weight[0].size ** 0.5))
        unit, made = x.scale * step, sums.astype(np.float64) * step
        spread = int(made.std() / unit / 4) + 1
        bias = self.random.integers(-spread, spread + 1, count).astype(np.int32)
        value = made + bias.reshape(-1, *(1,) * (made.ndim - 1)) * unit
        steps = np.full(count, step, np.float32)
        w = self.dequantized(weight, steps, axis=0)
        b = self.dequantized(bias, np.full(count, unit, np.float32), axis=0)
        name = self.node(kind, x.name, w, b, **words)
        if relu:
            name, value = self.node("Relu", name), np.maximum(value, 0)
        return self.quantized(name, value, signed=not relu)

    def shaped(self, kind: str, x: Made, value: Array, **words: Any) -> Made:
        """What keeps the step of the numbers that it reads."""
        return self.quantized(self.node(kind, x.name, **words), value, x.scale)

    def quantized(
        self, name: str, value: Array, scale: float = 0.0, *, signed: bool | None = None
    ) -> Made:
        """Numbers as bytes and back, in the least step that has room for all."""
        signed = bool((value < 0).any()) if signed is None else signed
        zero = MIDDLE if signed else 0
        most = max(float(abs(value).max()), 2.0**-20) / (UNSIGNED - zero)
        scale = scale or 2.0 ** math.ceil(math.log2(most))
        step = self.constant(np.float32(scale))
        middle = self.constant(np.uint8(zero))
        stored = self.node("QuantizeLinear", name, step, middle)
        told = self.node("DequantizeLinear", stored, step, middle)
        whole = np.clip(np.rint(value / scale) + zero, 0, UNSIGNED) - zero
        return Made(told, whole * scale, scale)

    def dequantized(self, numbers: Array, steps: Array, axis: int) -> str:
        names = self.constant(numbers), self.constant(steps)
        return self.node("DequantizeLinear", *names, axis=axis)

    def constant(self, array: Any) -> str:
        name = f"c{len(self.held)}"
        self.held[name] = np.asarray(array)
        return name

    def node(self, kind: str, *inputs: str, **words: Any) -> str:
        name = f"n{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], name, **words))
        return name


def windows(image: Array, size: int, stride: int) -> Array:
    """[c, y, x] -> [c, y, x, size, size]"""
    found = np.lib.stride_tricks.sliding_window_view(image, (size, size), (1, 2))
    return found[:, ::stride, ::stride]


def convolved(image: Array, weight: Array, stride: int) -> Array:
    """The sums in f32, which has room for all of them, tap by tap."""
    size, padded = weight.shape[-1], image.astype(np.float32)
    side = [(extent - size) // stride + 1 for extent in image.shape[1:]]
    total = np.zeros((len(weight), side[0] * side[1]), np.float32)
    for r, q in np.ndindex(size, size):
        part = padded[:, r : r + stride * side[0] : stride][:, : side[0]]
        part = part[:, :, q : q + stride * side[1] : stride][:, :, : side[1]]
        total += weight[:, :, r, q].astype(np.float32) @ part.reshape(len(image), -1)
    return total.reshape(len(weight), *side)


# ---- the networks --------------------------------------------------------------------


def resnet(net: Drawing, x: Made, blocks: tuple[int, ...]) -> Made:
    """ResNet-18 and -34: two convolutions a block, and what goes past them."""
    x = net.largest(net.conv(x, 64, 7, 2), 3, 2)
    for stage, count in enumerate(blocks):
        for block in range(count):
            filters, stride = 64 << stage, 2 if stage and not block else 1
            inner = net.conv(net.conv(x, filters, 3, stride), filters, 3, relu=False)
            past = net.conv(x, filters, 1, stride, relu=False) if stride > 1 else x
            x = net.add(inner, past)
    return net.mean(x)


def vgg(net: Drawing, x: Made, blocks: tuple[int, ...]) -> Made:
    """VGG-11, -13 and -16: convolutions of 3x3, then two large products."""
    for stage, count in enumerate(blocks):
        for _ in range(count):
            x = net.conv(x, min(512, 64 << stage), 3)
        x = net.largest(x, 2, 2)
    return net.dense(net.dense(x, net.channels(4096)), net.channels(4096))


def densenet(net: Drawing, x: Made, blocks: tuple[int, ...]) -> Made:
    """DenseNet-121: 32 channels more from every layer."""
    x = net.largest(net.conv(x, 64, 7, 2), 3, 2)
    for stage, count in enumerate(blocks):
        for _ in range(count):
            made = net.conv(net.normalized(x), 128, 1)
            x = net.concat(x, net.conv(made, 32, 3, relu=False))
        x = net.normalized(x)
        if stage < len(blocks) - 1:
            half = len(x.value) * net.part // 2
            x = net.average(net.conv(x, half, 1, relu=False))
    return net.mean(x)


Layers = Callable[[Drawing, Made, tuple[int, ...]], Made]
NETWORKS: Mapping[str, tuple[Layers, tuple[int, ...]]] = {
    "resnet18": (resnet, (2, 2, 2, 2)),
    "resnet34": (resnet, (3, 4, 6, 3)),
    "vgg11": (vgg, (1, 1, 2, 2, 2)),
    "vgg13": (vgg, (2, 2, 2, 2, 2)),
    "vgg16": (vgg, (2, 2, 3, 3, 3)),
    "densenet121": (densenet, (6, 12, 24, 16)),
}
SIDE, QUICK_SIDE, QUICK_PART = 224, 32, 16
ROOM = 0.1  # of the largest number, for peers that round halves up


def drawn(name: str, *, quick: bool) -> Network:
    """A network and its numbers.  quick: a small image, a sixteenth of the channels."""
    layers, blocks = NETWORKS[name]
    net = Drawing(QUICK_PART if quick else 1)
    side = QUICK_SIDE if quick else SIDE
    image = net.random.integers(0, 256, (3, side, side)).astype(np.float64) / 256
    made = net.quantized("image", image, 1 / 256)
    last = net.dense(layers(net, made, blocks), CLASSES // net.part, relu=False)
    room = ROOM * float(abs(last.value).max())
    value = last.value[None]
    return Network(
        model_of(name, net, image.shape, last),
        image[None].astype(np.float32),
        value,
        room,
    )


def model_of(
    name: str, net: Drawing, shape: tuple[int, ...], last: Made
) -> onnx.ModelProto:
    """What was drawn; shape: of the image, without the one of its batch."""
    floats = TensorProto.FLOAT
    graph = helper.make_graph(
        net.nodes,
        name,
        [helper.make_tensor_value_info("image", floats, (1, *shape))],
        [helper.make_tensor_value_info(last.name, floats, (1, *last.value.shape))],
        [numpy_helper.from_array(array, key) for key, array in net.held.items()],
    )
    opsets = [helper.make_opsetid("", 19)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)
