"""Blocks that real networks are made of, at any size and number of channels.

    model = block("c2f", np.random.default_rng(3))

draws the sizes and the weights; `BLOCKS` has the kinds by name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx
from onnx import helper, numpy_helper

Shape = tuple[int, ...]


class Block:
    """A graph while it is written: each method adds nodes and names what they make."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def node(self, op: str, *inputs: str, **attributes: object) -> str:
        return self.several(op, *inputs, outputs=1, **attributes)[0]

    def several(
        self, op: str, *inputs: str, outputs: int, **attributes: object
    ) -> list[str]:
        names = [f"v{len(self.nodes)}.{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, **attributes))
        return names

    def weight(self, *shape: int, around: float = 0.0) -> str:
        """Numbers that keep sums of products near the size of what they multiply."""
        size = max(1, int(np.prod(shape[1:])))
        value = self.rng.standard_normal(shape) / np.sqrt(size) + around
        return self.constant(value.astype(np.float32))

    def constant(self, value: np.ndarray) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(value, name))
        return name

    def conv(
        self, x: str, inputs: int, outputs: int, side: int = 1, **more: object
    ) -> str:
        """With a bias, and as large as its input at stride 1."""
        group = int(str(more.get("group", 1)))
        weight = self.weight(outputs, inputs // group, side, side)
        pads = [side // 2] * 4
        return self.node("Conv", x, weight, self.weight(outputs), pads=pads, **more)

    def limit(self, value: float) -> str:
        return self.constant(np.array(value, np.float32))

    def silu(self, x: str) -> str:
        return self.node("Mul", x, self.node("Sigmoid", x))

    def relu(self, x: str) -> str:
        return self.node("Relu", x)

    def add(self, x: str, y: str) -> str:
        return self.node("Add", x, y)

    def concat(self, *parts: str) -> str:
        return self.node("Concat", *parts, axis=1)

    def norm(self, x: str, channels: int) -> str:
        """Of an image's channels, as in inference."""
        given = [self.weight(channels, around=1.0), self.weight(channels)]
        given += [self.weight(channels), self.constant(np.ones(channels, np.float32))]
        return self.node("BatchNormalization", x, *given)

    def linear(self, x: str, inputs: int, outputs: int) -> str:
        product = self.node("MatMul", x, self.weight(inputs, outputs))
        return self.add(product, self.weight(outputs))

    def layer_norm(self, x: str, channels: int) -> str:
        given = self.weight(channels, around=1.0), self.weight(channels)
        return self.node("LayerNormalization", x, *given, axis=-1)

    def transposed(self, x: str, *perm: int) -> str:
        return self.node("Transpose", x, perm=perm)

    def reshaped(self, x: str, *shape: int) -> str:
        return self.node("Reshape", x, self.constant(np.array(shape, np.int64)))


# ---- of images: channels in, the name of what they make out


def c2f(b: Block, x: str, c: int, hw: Shape) -> str:
    del hw
    half = max(1, c // 2)
    parts = b.several(
        "Split", b.silu(b.conv(x, c, 2 * half)), outputs=2, axis=1, num_outputs=2
    )
    for _ in range(int(b.rng.integers(1, 3))):
        inner = b.silu(b.conv(b.silu(b.conv(parts[-1], half, half, 3)), half, half, 3))
        parts.append(b.add(parts[-1], inner))
    return b.silu(b.conv(b.concat(*parts), len(parts) * half, c))


def spp(b: Block, x: str, c: int, hw: Shape) -> str:
    del hw
    half = max(1, c // 2)
    parts = [b.silu(b.conv(x, c, half))]
    for _ in range(3):
        pool = b.node("MaxPool", parts[-1], kernel_shape=[5, 5], pads=[2] * 4)
        parts.append(pool)
    return b.silu(b.conv(b.concat(*parts), 4 * half, c))


def inverted_residual(b: Block, x: str, c: int, hw: Shape) -> str:
    del hw
    wide = 3 * c
    inner = b.node("Clip", b.conv(x, c, wide), b.limit(0), b.limit(6))
    stride = int(b.rng.integers(1, 3))
    deep = b.conv(inner, wide, wide, 3, group=wide, strides=[stride] * 2)
    out = b.conv(b.relu(deep), wide, c)
    return b.add(x, out) if stride == 1 else out


def mbconv(b: Block, x: str, c: int, hw: Shape) -> str:
    """With squeeze and excitation."""
    del hw
    wide = 2 * c
    deep = b.silu(b.conv(b.silu(b.conv(x, c, wide)), wide, wide, 5, group=wide))
    pooled = b.node("GlobalAveragePool", deep)
    narrow = b.silu(b.conv(pooled, wide, max(1, c // 4)))
    gate = b.node("Sigmoid", b.conv(narrow, max(1, c // 4), wide))
    return b.add(x, b.conv(b.node("Mul", deep, gate), wide, c))


def bottleneck(b: Block, x: str, c: int, hw: Shape) -> str:
    del hw
    narrow = max(1, c // 4)
    inner = b.relu(b.norm(b.conv(x, c, narrow), narrow))
    inner = b.relu(b.norm(b.conv(inner, narrow, narrow, 3), narrow))
    return b.relu(b.add(x, b.norm(b.conv(inner, narrow, c), c)))


def dense(b: Block, x: str, c: int, hw: Shape) -> str:
    del hw
    parts, channels, growth = x, c, 1 + c // 3
    for _ in range(4):
        inner = b.relu(b.norm(parts, channels))
        inner = b.relu(b.norm(b.conv(inner, channels, 2 * growth), 2 * growth))
        parts = b.concat(parts, b.conv(inner, 2 * growth, growth, 3))
        channels += growth
    return parts


def inception(b: Block, x: str, c: int, hw: Shape) -> str:
    del hw
    pool = b.node("AveragePool", x, kernel_shape=[3, 3], pads=[1] * 4)
    return b.concat(
        b.relu(b.conv(x, c, c)),
        b.relu(b.conv(b.relu(b.conv(x, c, 1 + c // 2)), 1 + c // 2, c, 3)),
        b.relu(b.conv(b.relu(b.conv(x, c, 1 + c // 8)), 1 + c // 8, c, 5)),
        b.relu(b.conv(pool, c, c)),
    )


def unet(b: Block, x: str, c: int, hw: Shape) -> str:
    """Down, and up again to where it was."""
    h, w = hw
    side = b.relu(b.conv(x, c, c, 3))
    down = b.node("MaxPool", side, kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1)
    deep = b.relu(b.conv(down, c, 2 * c, 3))
    weight = b.weight(2 * c, c, 2, 2)
    up = b.node("ConvTranspose", deep, weight, strides=[2, 2])
    ends = b.constant(np.array([h, w], np.int64))
    zeros, axes = (b.constant(np.array(v, np.int64)) for v in ([0, 0], [2, 3]))
    cut = b.node("Slice", up, zeros, ends, axes)
    return b.relu(b.conv(b.concat(side, cut), 2 * c, c, 3))


def convnext(b: Block, x: str, c: int, hw: Shape) -> str:
    del hw
    rows = b.transposed(b.conv(x, c, c, 7, group=c), 0, 2, 3, 1)
    wide = b.linear(b.layer_norm(rows, c), c, 4 * c)
    half = b.constant(np.array(0.5, np.float32))
    root = b.constant(np.array(0.5**0.5, np.float32))
    one = b.constant(np.array(1.0, np.float32))
    erf = b.add(b.node("Erf", b.node("Mul", wide, root)), one)
    gelu = b.node("Mul", b.node("Mul", wide, erf), half)
    scaled = b.node("Mul", b.linear(gelu, 4 * c, c), b.weight(c))
    return b.add(x, b.transposed(scaled, 0, 3, 1, 2))


def repvgg(b: Block, x: str, c: int, hw: Shape) -> str:
    del hw
    three, one = b.norm(b.conv(x, c, c, 3), c), b.norm(b.conv(x, c, c), c)
    return b.relu(b.add(b.add(three, one), b.norm(x, c)))


def attention(b: Block, x: str, c: int, hw: Shape) -> str:
    """Over the pixels, with its projections; heads of c // 2 channels."""
    rows, heads = hw[0] * hw[1], 2 if c % 2 == 0 else 1
    tokens = b.transposed(b.reshaped(x, 0, c, rows), 0, 2, 1)
    normal = b.layer_norm(tokens, c)
    split = [0, rows, heads, c // heads]
    q, k, v = (b.reshaped(b.linear(normal, c, c), *split) for _ in range(3))
    scores = b.node("MatMul", b.transposed(q, 0, 2, 1, 3), b.transposed(k, 0, 2, 3, 1))
    scale = b.constant(np.array((c // heads) ** -0.5, np.float32))
    weights = b.node("Softmax", b.node("Mul", scores, scale), axis=-1)
    found = b.node("MatMul", weights, b.transposed(v, 0, 2, 1, 3))
    joined = b.reshaped(b.transposed(found, 0, 2, 1, 3), 0, rows, c)
    return b.add(tokens, b.linear(joined, c, c))


BLOCKS: dict[str, Callable[[Block, str, int, Shape], str]] = {
    f.__name__: f
    for f in (
        attention, bottleneck, c2f, convnext, dense, inception, inverted_residual,
        mbconv, repvgg, spp, unet,
    )
}  # fmt: skip


def block(
    kind: str, rng: np.random.Generator, sizes: Sequence[int] | None = None
) -> onnx.ModelProto:
    """A block of this kind.  sizes: images, channels, height, width; drawn without."""
    n, c, h, w = sizes or drawn_sizes(rng)
    made = Block(rng)
    last = BLOCKS[kind](made, "x", c, (h, w))
    made.nodes.append(helper.make_node("Identity", [last], ["y"]))
    graph = helper.make_graph(
        made.nodes,
        kind,
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [n, c, h, w])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)],
        made.weights,
    )
    opsets = [helper.make_opsetid("", 18)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def drawn_sizes(rng: np.random.Generator) -> tuple[int, int, int, int]:
    """Small and large ones, that divide nothing and that divide much."""
    channels = int(rng.choice([*rng.integers(1, 161, 4), 16, 32, 64, 96, 128, 160]))
    most = 40 if channels <= 48 else 16
    h, w = (int(x) for x in rng.integers(1, most + 1, 2))
    return int(rng.integers(1, 4)), channels, h, w
