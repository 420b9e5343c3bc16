"""Layers that read a padded image, drawn at random, and their results in float64."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Array = np.ndarray
MODES = ("constant", "argument", "reflect", "edge", "wrap")
READERS = ("conv", "depthwise", "largest", "average", "mean", "elementwise")
KINDS = [(mode, reader) for mode in MODES for reader in READERS] + [
    ("own", reader) for reader in ("conv", "depthwise", "largest", "average")
]


@dataclass(frozen=True)
class PaddedLayer:
    """x [n, c, h, w], padded, then read by windows [k, l] or one by one.

    mode: of a Pad, constant or with a number that a run gives; own: of the layer's
    pads.  sides: in front of rows and pixels, then behind.  open: h and w are sizes.
    """

    mode: str
    reader: str
    x: Array
    weights: Array
    number: float
    sides: tuple[int, int, int, int]
    steps: tuple[int, int]
    apart: tuple[int, int]
    open: bool

    @staticmethod
    def of(seed: int) -> PaddedLayer:
        """Whole numbers, so that sums are exact in any order."""
        r = np.random.default_rng([2713, seed])
        mode, reader = KINDS[seed % len(KINDS)]
        channels, filters = (int(r.choice([1, 3, 8, 20])) for _ in range(2))
        shape = 1 + seed % 2, channels, *(int(n) for n in r.integers(6, 22, 2))
        window = tuple(int(n) for n in r.integers(1, 4, 2))
        narrow = channels if reader != "conv" else filters
        inner = 1 if reader != "conv" else channels
        most = min(window) - 1 if mode == "own" else 3
        number = 0 if mode == "own" else float(r.integers(-5, 6))
        sides = tuple(int(n) for n in r.integers(0, most + 1, 4))
        one, other, third, fourth = sides
        return PaddedLayer(
            mode,
            reader,
            r.integers(-4, 5, shape).astype(np.float32),
            r.integers(-3, 4, (narrow, inner, *window)).astype(np.float32),
            number,
            (one, other, third, fourth),
            (int(r.integers(1, 3)), int(r.integers(1, 3))),
            (int(r.integers(1, 3)), 1) if reader in ("conv", "depthwise") else (1, 1),
            bool(seed % 3 == 0),
        )

    @property
    def inputs(self) -> dict[str, Array]:
        given = {"v": np.array(self.number, np.float32)}
        return {"x": self.x, **(given if self.mode == "argument" else {})}

    @property
    def is_padded(self) -> bool:
        return any(self.sides)

    def padded(self, x: Array, number: float) -> Array:
        a, b, c, d = self.sides
        sides = [(0, 0), (0, 0), (a, c), (b, d)]
        if self.mode in ("reflect", "edge", "wrap"):
            return np.pad(x, sides, self.mode)  # type: ignore[call-overload] - one of its modes
        return np.pad(x, sides, constant_values=number)

    def taps(self, x: Array) -> Iterator[tuple[tuple[int, int], Array]]:
        """What each place of the window reads, for all windows."""
        rows, pixels = self.weights.shape[2:]
        (s, t), (d, e) = self.steps, self.apart
        high, wide = x.shape[2] - (rows - 1) * d, x.shape[3] - (pixels - 1) * e
        for i, j in product(range(rows), range(pixels)):
            yield (i, j), x[..., i * d : i * d + high : s, j * e : j * e + wide : t]

    def exact(self, number: float) -> Array:
        """In float64; number: what is around a constant padding."""
        least = -np.inf if self.mode == "own" and self.reader == "largest" else number
        x, w = self.padded(self.x.astype(np.float64), least), self.weights
        match self.reader:
            case "elementwise":
                return 2 * x
            case "mean":
                return x.mean((2, 3), keepdims=True)
            case "largest":
                return np.max([here for _, here in self.taps(x)], axis=0)
            case "average":
                within = np.ones_like(self.x, np.float64)
                every = self.padded(within, 0) if self.mode == "own" else x * 0 + 1
                counts = np.sum([here for _, here in self.taps(every)], 0)
                return np.sum([here for _, here in self.taps(x)], 0) / counts
            case "depthwise":
                taps = self.taps(x)
                return np.sum([w[:, :1, i, j, None] * y for (i, j), y in taps], 0)
            case _:
                taps = self.taps(x)
                way = "fc,nchw->nfhw"
                return np.sum(
                    [np.einsum(way, w[..., i, j], y) for (i, j), y in taps], 0
                )

    def model(self) -> onnx.ModelProto:
        known = {"w": self.weights, "two": np.float32(2)}
        read, nodes = "x", list[onnx.NodeProto]()
        if self.mode != "own":
            a, b, c, d = self.sides
            known["p"] = np.array([0, 0, a, b, 0, 0, c, d], np.int64)  # type: ignore[assignment] - of another type
            given = ["x", "p"]
            if self.mode in ("constant", "argument"):
                given.append("v")
            if self.mode == "constant":
                known["v"] = np.array(self.number, np.float32)
            mode = "constant" if self.mode == "argument" else self.mode
            nodes.append(helper.make_node("Pad", given, ["padded"], mode=mode))
            read = "padded"
        nodes.append(self.layer(read))
        shape = [*self.x.shape[:2], "h", "w"] if self.open else self.x.shape
        kind = TensorProto.FLOAT
        inputs = [helper.make_tensor_value_info("x", kind, shape)]
        if self.mode == "argument":
            inputs.append(helper.make_tensor_value_info("v", kind, []))
        graph = helper.make_graph(
            nodes, "layer", inputs, [helper.make_tensor_value_info("y", kind, None)],
            [numpy_helper.from_array(np.asarray(x), name) for name, x in known.items()],
        )  # fmt: skip
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)])

    def layer(self, read: str) -> onnx.NodeProto:
        """The node that reads the padded image, or pads it itself."""
        how: dict[str, Any] = {"strides": self.steps}
        if self.mode == "own":
            how["pads"] = self.sides
        window: dict[str, Any] = {"kernel_shape": self.weights.shape[2:]}
        match self.reader:
            case "elementwise":
                return helper.make_node("Mul", [read, "two"], ["y"])
            case "mean":
                return helper.make_node("GlobalAveragePool", [read], ["y"])
            case "largest":
                return helper.make_node("MaxPool", [read], ["y"], **how, **window)
            case "average":
                return helper.make_node("AveragePool", [read], ["y"], **how, **window)
            case _:
                how["group"] = self.x.shape[1] if self.reader == "depthwise" else 1
                how["dilations"] = self.apart
                return helper.make_node("Conv", [read, "w"], ["y"], **how)
