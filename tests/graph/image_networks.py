"""Networks on images made at random, with numbers that stay small integers.

Sums of small integers are exact in f32 in any order: a result is right or wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

LIMIT = 8.0
MOST = 5000  # elements of a value
Shape = tuple[int, ...]
Value = tuple[str, Shape]


@dataclass
class Network:
    """A model being made: nodes, weights, and the values so far."""

    r: np.random.Generator
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    weights: list[onnx.TensorProto] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)

    def weight(self, array: Any) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def integers(self, shape: Any, most: int = 2) -> str:
        return self.weight(self.r.integers(-most, most + 1, shape).astype(np.float32))

    def pick(self, fits: Callable[[Shape], bool] = lambda _: True) -> Value:
        """One of the values, later ones more often; IndexError if none fits."""
        fitting = [value for value in self.values if fits(value[1])]
        place = int(len(fitting) * self.r.random() ** 0.4)
        return fitting[min(place, len(fitting) - 1)]

    def add(self, op: str, inputs: list[str], shape: Shape, **attributes: Any) -> None:
        name = f"v{len(self.nodes)}"
        node = helper.make_node(op, inputs, [name], name=f"{op}_{name}", **attributes)
        self.nodes.append(node)
        self.values.append((name, shape))

    def cut_back(self) -> None:
        name, shape = self.values[-1]
        limits = [self.weight(np.float32(x)) for x in (-LIMIT, LIMIT)]
        self.add("Clip", [name, *limits], shape)


def is_image(shape: Shape) -> bool:
    return len(shape) == 4


def convolve(net: Network) -> None:
    x, s = net.pick(lambda s: is_image(s) and min(s[2:]) >= 3)
    size, stride = int(net.r.choice([1, 3])), int(net.r.choice([1, 1, 2]))
    pad, group, made = (
        int(net.r.integers(size // 2 + 1)),
        1,
        int(net.r.choice([1, 5, 8])),
    )
    if net.r.integers(4) == 0:  # depthwise
        group, made = s[1], s[1] * int(net.r.integers(1, 3))
    bias = [net.integers(made)] if net.r.integers(2) else []
    kernel = net.integers((made, s[1] // group, size, size), 1)
    extents = [(d + 2 * pad - size) // stride + 1 for d in s[2:]]
    net.add(
        "Conv", [x, kernel, *bias], (s[0], made, *extents), kernel_shape=[size] * 2,
        strides=[stride] * 2, pads=[pad] * 4, group=group,
    )  # fmt: skip
    net.cut_back()


def pool(net: Network) -> None:
    x, s = net.pick(lambda s: is_image(s) and min(s[2:]) >= 2)
    extents = [d - 1 for d in s[2:]]
    net.add("MaxPool", [x], (*s[:2], *extents), kernel_shape=[2, 2])


def pool_all(net: Network) -> None:
    x, s = net.pick(is_image)
    net.add("GlobalMaxPool", [x], (*s[:2], 1, 1))


def relu(net: Network) -> None:
    x, s = net.pick()
    net.add("Relu", [x], s)


def residual(net: Network) -> None:
    x, s = net.pick()
    y, _ = net.pick(lambda t: t == s)
    net.add("Add", [x, y], s)
    net.cut_back()


def with_constant(net: Network) -> None:
    x, s = net.pick()
    kept = [d if net.r.integers(2) else 1 for d in s][int(net.r.integers(len(s))) :]
    pair = [x, net.integers(kept)]
    op = str(net.r.choice(["Add", "Mul", "Sub"]))
    net.add(op, pair if net.r.integers(2) else pair[::-1], s)
    net.cut_back()


def transpose(net: Network) -> None:
    x, s = net.pick(lambda s: len(s) >= 2)
    order = [int(d) for d in net.r.permutation(len(s))]
    net.add("Transpose", [x], tuple(s[d] for d in order), perm=order)


def concat(net: Network) -> None:
    x, s = net.pick()
    axis = int(net.r.integers(len(s)))
    y, t = net.pick(
        lambda t: (
            len(t) == len(s)
            and (*t[:axis], *t[axis + 1 :]) == (*s[:axis], *s[axis + 1 :])
        )
    )
    joined = (*s[:axis], s[axis] + t[axis], *s[axis + 1 :])
    net.add("Concat", [x, y], joined, axis=axis - len(s) * int(net.r.integers(2)))


def reduce(net: Network) -> None:
    x, s = net.pick(lambda s: len(s) > 1)
    count = int(net.r.integers(1, len(s)))
    axes = [int(a) for a in net.r.choice(len(s), count, replace=False)]
    keep = int(net.r.integers(2))
    made = tuple(
        1 if d in axes else n for d, n in enumerate(s) if keep or d not in axes
    )
    op = str(net.r.choice(["ReduceMax", "ReduceSum", "ReduceMin"]))
    given = [a - len(s) * int(net.r.integers(2)) for a in axes]
    net.add(op, [x, net.weight(np.array(given, np.int64))], made, keepdims=keep)
    net.cut_back()


def pad(net: Network) -> None:
    x, s = net.pick(is_image)
    pads = [int(n) for n in net.r.integers(0, 2, 8)]
    made = tuple(d + a + b for d, a, b in zip(s, pads[:4], pads[4:], strict=True))
    number = net.weight(np.float32(2))
    net.add("Pad", [x, net.weight(np.array(pads, np.int64)), number], made)


def cut(net: Network) -> None:
    """Two dimensions, one of them backwards."""
    x, s = net.pick(is_image)
    first, second = (int(a) for a in net.r.choice(4, 2, replace=False))
    begin = int(net.r.integers(s[first]))
    numbers = [[begin, -1], [s[first], -s[second] - 1], [first, second - 4], [1, -1]]
    given = [net.weight(np.array(n, np.int64)) for n in numbers]
    made = tuple(n - begin if d == first else n for d, n in enumerate(s))
    net.add("Slice", [x, *given], made)


def parts(net: Network) -> None:
    """The sum of both halves of the first channels."""
    x, s = net.pick(lambda s: is_image(s) and s[1] > 1)
    sizes, made = [s[1] // 2, s[1] - s[1] // 2], (s[0], s[1] // 2, *s[2:])
    names = [f"part{len(net.nodes)}_{i}" for i in range(2)]
    given = [x, net.weight(np.array(sizes, np.int64))]
    net.nodes.append(helper.make_node("Split", given, names, name=names[0], axis=-3))
    if sizes[0] == sizes[1]:
        net.add("Max", names, made)
    else:
        net.add("Relu", [names[1]], (s[0], sizes[1], *s[2:]))


def normalize(net: Network) -> None:
    """Factors that are whole: 2 / sqrt(1/4)."""
    x, s = net.pick(is_image)
    variance = net.weight(net.r.choice([0.25, 1], s[1]).astype(np.float32))
    vectors = [net.integers(s[1]) for _ in range(3)]
    inputs = [x, *vectors, variance]
    net.add("BatchNormalization", inputs, s, epsilon=0.0)
    net.cut_back()


def resize(net: Network) -> None:
    x, s = net.pick(lambda s: is_image(s) and s[2] * s[3] < 100)
    scales = net.weight(np.array([1, 1, 2, 2], np.float32))
    net.add(
        "Resize", [x, "", scales], (*s[:2], 2 * s[2], 2 * s[3]), mode="nearest",
        coordinate_transformation_mode="asymmetric", nearest_mode="floor",
    )  # fmt: skip


def flatten(net: Network) -> None:
    x, s = net.pick(is_image)
    made = (s[0], s[1] * s[2] * s[3])
    net.add("Reshape", [x, net.weight(np.array([s[0], -1], np.int64))], made)


def dense(net: Network) -> None:
    x, s = net.pick(lambda s: len(s) == 2 and s[1] < 200)
    made = int(net.r.choice([3, 8]))
    net.add("Gemm", [x, net.integers((made, s[1]), 1)], (s[0], made), transB=1)
    net.cut_back()


STEPS = (
    convolve, convolve, convolve, convolve, pool, pool_all, relu, residual,
    with_constant, transpose, concat, reduce, pad, cut, parts, normalize, resize,
    flatten, dense,
)  # fmt: skip


def network(seed: int, values: int) -> tuple[onnx.ModelProto, np.ndarray]:
    """A model of about so many values, and an input for it."""
    r = np.random.default_rng(seed)
    shape = tuple(int(r.choice(c)) for c in ([1, 2], [1, 3, 4], [5, 7, 8], [5, 6, 9]))
    net = Network(r, values=[("x", shape)])
    while len(net.values) < values:
        sizes = len(net.nodes), len(net.weights), len(net.values)
        try:
            STEPS[r.integers(len(STEPS))](net)
            good = int(np.prod(net.values[-1][1])) <= MOST
        except IndexError:  # nothing fits this step yet
            good = False
        if not good:
            del net.nodes[sizes[0] :], net.weights[sizes[1] :], net.values[sizes[2] :]
    names = dict.fromkeys([net.values[-1], net.pick(), net.pick()])
    outputs = [value for value in names if value[0] != "x"]
    infos = [
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in side]
        for side in ([("x", shape)], outputs)
    ]
    graph = helper.make_graph(net.nodes, "random", *infos, net.weights)
    opsets = [helper.make_opsetid("", 21)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    return model, r.integers(-4, 5, shape).astype(np.float32)
