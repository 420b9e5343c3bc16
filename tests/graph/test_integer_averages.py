"""Averages between two quantizations are sums of integers, rounded once."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import nanoloom
from nanoloom.graph.quantization import DOMAIN
from tests.graph.models import optimized

SCALES = {"s": np.float32(0.0713), "t": np.float32(0.0391)}
ZEROS = {"uint8": (113, 9), "int8": (-5, 17)}
CASES: dict[str, dict[str, Any]] = {
    "global": {},
    "windows": {"kernel_shape": [3, 2], "strides": [2, 1]},
    "a border": {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]},
    "a border that counts": {
        "kernel_shape": [3, 3], "pads": [1, 0, 2, 1], "count_include_pad": 1,
    },
    "rounded up": {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1},
    "one": {"kernel_shape": [7, 9]},
    "further than the image": {"kernel_shape": [31, 21], "pads": [15, 10, 16, 11]},
    "a further border that counts": {
        "kernel_shape": [19, 40], "pads": [9, 39, 11, 2], "count_include_pad": 1,
    },
    "a mean": {"axes": [2, -1]},
    "a mean without its axes": {"axes": [3, 2], "keepdims": 0},
}  # fmt: skip
SHAPE = (2, 5, 7, 9)


def model(name: str, x: str, y: str, scale: Any = None) -> onnx.ModelProto:
    """The average of a case between two quantizations."""
    words = CASES[name]
    op = "AveragePool" if words else "GlobalAveragePool"
    op = "ReduceMean" if "axes" in words else op
    constants = {
        "s": SCALES["s"] if scale is None else scale,
        "t": SCALES["t"],
        "z": np.asarray(ZEROS[x][0], x),
        "w": np.asarray(ZEROS[y][1], y),
    }
    given = ["d"]
    if op == "ReduceMean":
        words, given = {k: v for k, v in words.items() if k != "axes"}, ["d", "axes"]
        constants["axes"] = np.array(CASES[name]["axes"])
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "s", "z"], ["d"]),
        helper.make_node(op, given, ["m"], **words),
        helper.make_node("QuantizeLinear", ["m", "t", "w"], ["y"]),
    ]
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(x))
    graph = helper.make_graph(
        nodes,
        "average",
        [helper.make_tensor_value_info("x", kind, SHAPE)],
        [onnx.ValueInfoProto(name="y")],
        [numpy_helper.from_array(np.asarray(a), n) for n, a in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])


def exact(name: str, x: np.ndarray, y: str) -> np.ndarray:
    """In integers, then float64; windows one after another."""
    words = CASES[name]
    kernel = words.get("kernel_shape", SHAPE[2:])
    strides, pads = words.get("strides", [1, 1]), words.get("pads", [0] * 4)
    up = words.get("ceil_mode", 0)
    numbers = x.astype(np.int64) - ZEROS[x.dtype.name][0]
    around = [(0, 0), (0, 0), *zip(pads[:2], pads[2:], strict=True)]
    given = np.pad(numbers, around)
    counted = np.pad(
        np.ones(SHAPE, np.int64),
        around,
        constant_values=words.get("count_include_pad", 0),
    )
    sizes = [
        -((k - n) // s if up else -((n - k) // s)) + 1
        for n, k, s in zip(given.shape[2:], kernel, strides, strict=True)
    ]
    made = np.zeros((*SHAPE[:2], *sizes))
    for i, j in product(*map(range, sizes)):
        rows = slice(i * strides[0], i * strides[0] + kernel[0])
        columns = slice(j * strides[1], j * strides[1] + kernel[1])
        total = given[:, :, rows, columns].sum((2, 3))
        made[:, :, i, j] = total / counted[:, :, rows, columns].sum((2, 3))
    scale = SCALES["s"].astype(np.float64) / SCALES["t"]
    ends = np.iinfo(y)
    made = made if words.get("keepdims", 1) else made[..., 0, 0]
    return np.clip(np.rint(made * scale) + ZEROS[y][1], ends.min, ends.max)


def numbers(kind: str) -> np.ndarray:
    ends = np.iinfo(kind)
    return np.random.default_rng(5).integers(
        ends.min, ends.max, SHAPE, kind, endpoint=True
    )


@pytest.mark.drawn
@pytest.mark.parametrize(("name", "x", "y"), product(CASES, ZEROS, ZEROS), ids=str)
def test_averages_are_exact(name: str, x: str, y: str) -> None:
    proto, given = model(name, x, y), numbers(x)
    assert [n.domain for n in optimized(proto) if "Pool" in n.op_type] == [DOMAIN]
    assert len([n for n in optimized(proto) if "Linear" in n.op_type]) == 0
    (got,) = nanoloom.compile(proto)({"x": given}).values()
    right = exact(name, given, y)
    assert got.dtype == y and got.shape == right.shape
    np.testing.assert_array_equal(got, right)
    assert len(np.unique(got)) > 3


@pytest.mark.parametrize("axes", [[2], [1, 2], [1, 2, 3]])
def test_a_mean_over_less_or_more_stays_in_floats(axes: list[int]) -> None:
    proto = model("a mean", "uint8", "uint8")
    given = next(x for x in proto.graph.initializer if x.name == "axes")
    given.CopyFrom(numpy_helper.from_array(np.array(axes), "axes"))
    made = optimized(proto)
    assert [n.domain for n in made if n.op_type == "ReduceMean"] == [""]


def test_a_scale_that_overflows_stays_in_floats() -> None:
    proto = model("global", "uint8", "uint8", scale=np.float32(np.inf))
    assert DOMAIN not in [n.domain for n in optimized(proto) if "Pool" in n.op_type]
