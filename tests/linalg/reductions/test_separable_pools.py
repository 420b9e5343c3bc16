"""The largest of a window, and its sum, along one axis after the other."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

import nanoloom
from nanoloom.ir import mlir
from nanoloom.linalg.builder.window import Window
from nanoloom.linalg.reductions.pooling import parts_of
from tests.drawn_cases import few_examples
from tests.linalg.reductions.test_pooling import Case, windows
from tests.linalg.single import run_node
from tests.vector.kernel_harness import shared_cache


@st.composite
def wide_windows(draw: st.DrawFn) -> tuple[tuple[int, ...], Case, bool]:
    """Of images that no window or stride divides, in one to three dimensions."""
    rank = draw(st.integers(1, 3))

    def ints(low: int, high: int) -> list[int]:
        return draw(st.lists(st.integers(low, high), min_size=rank, max_size=rank))

    kernel = ints(3, 7 if rank < 3 else 4)
    case = {
        "kernel_shape": kernel,
        "strides": ints(1, 2),
        "dilations": ints(1, 2),
        "pads": [
            min(p, k - 1) for p, k in zip(ints(0, 3) * 2, kernel * 2, strict=True)
        ],
    }
    size = [13 + s for s in ints(0, 4)] if rank < 3 else [7 + s for s in ints(0, 2)]
    return (2, draw(st.sampled_from([1, 3, 9])), *size), case, draw(st.booleans())


@given(wide_windows(), st.sampled_from(["float32", "float16", "uint8"]))
@few_examples(15)
def test_the_largest_of_wide_windows(
    drawn: tuple[tuple[int, ...], Case, bool], kind: str
) -> None:
    """The same numbers, NaN where one is in the window, infinity where all are."""
    shape, case, ceil = drawn
    random = np.random.default_rng(1)
    x = (50 * random.standard_normal(shape) + 60 * (kind == "uint8")).astype(kind)
    if kind != "uint8":
        x.flat[:: x.size // 5] = np.nan
        x[1] = -np.inf
    got = run_node("MaxPool", [x], ceil_mode=int(ceil), **case)[0]
    right = windows(x.astype(np.float64), case, ceil, -np.inf)[0].max(0)
    assert got.dtype == x.dtype and got.shape == right.shape
    assert np.array_equal(got.astype(np.float64), right, equal_nan=kind != "uint8")
    assert not np.array_equal(got[:, :, ::-1], right[:, :, ::-1] + 1)


@pytest.mark.parametrize(
    ("kernel", "strides", "count"),
    [
        ((5, 5), (1, 1), 2),
        ((5, 5), (2, 2), 2),
        ((3, 3, 3), (1, 1, 1), 3),
        ((3, 3), (1, 1), 1),
        ((4, 4), (4, 4), 1),
        ((1, 9), (1, 1), 1),
    ],
)
def test_axes_are_apart_where_that_is_fewer_taps(
    kernel: tuple[int, ...], strides: tuple[int, ...], count: int
) -> None:
    ones, zeros = (1,) * len(kernel), (0,) * len(kernel)
    size = tuple(4 * k + 1 for k in kernel)
    result = tuple(
        (s - k) // step + 1 for s, k, step in zip(size, kernel, strides, strict=True)
    )
    window = Window(kernel, strides, ones, zeros, zeros, size, result)
    single = Window(kernel, strides, ones, zeros, zeros, kernel, ones)
    with mlir.context():
        parts = parts_of(window)
        assert parts_of(single) == [single]
    assert len(parts) == count
    assert parts[0].size == size and parts[-1].result == result
    for part, following in pairwise(parts):
        assert part.result == following.size


def test_images_of_any_size() -> None:
    """Three pools one behind the other, as detectors have them."""
    words = {"kernel_shape": [5, 5], "pads": [2] * 4}
    nodes = [
        helper.make_node("MaxPool", [one], [other], **words)
        for one, other in zip("xab", "aby", strict=True)
    ]
    given = [
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, 9, "h", "w"])
        for name in "xy"
    ]
    graph = helper.make_graph(nodes, "pools", given[:1], given[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)])
    program = nanoloom.compile(model, cache=shared_cache())
    assert not program.open.reason
    for size in ((13, 7), (3, 19)):
        x = np.random.default_rng(2).standard_normal((1, 9, *size), np.float32)
        case = {
            "kernel_shape": [13, 13],
            "strides": [1, 1],
            "dilations": [1, 1],
            "pads": [6] * 4,
        }
        right = windows(x, case, False, -np.inf)[0].max(0)
        assert (program({"x": x})["y"] == right).all()
        assert right.std() > 0


@pytest.mark.parametrize(("strides", "channels"), [((1, 1), 64), ((2, 2), 9)])
def test_sums_over_wide_borders(strides: tuple[int, int], channels: int) -> None:
    """Compiled: windows that lie in the border for the most part."""
    case: dict[str, Any] = {
        "kernel_shape": [36, 21], "strides": [*strides], "dilations": [1, 1],
        "pads": [25, 20, 27, 5],
    }  # fmt: skip
    x = np.random.default_rng(3).standard_normal((1, channels, 16, 39), np.float32)
    sides = [
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
        for name, shape in (("x", x.shape), ("y", None))
    ]
    node = helper.make_node("AveragePool", ["x"], ["y"], count_include_pad=1, **case)
    graph = helper.make_graph([node], "pool", sides[:1], sides[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)])
    got = nanoloom.compile(model, threads=1, cache=shared_cache())({"x": x})["y"]
    values, _, counted = windows(x.astype(np.float64), case, False, 0)
    right, size = (v.sum(0) / counted.sum(0) for v in (values, abs(values)))
    bound = (16 + 21) * 2.0**-24 * size  # of each sum the terms that are there
    assert (abs(got - right) <= bound).all() and abs(right).max() > 4 * bound.max()
