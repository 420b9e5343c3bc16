"""Windows that are larger than images: only taps within the image are work."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

import nanoloom
from nanoloom.compiler import Report, partition_model
from nanoloom.frontend.onnx import load
from nanoloom.kernels.program import Program
from nanoloom.options import CompileOptions
from nanoloom.target import by_name
from tests.linalg.reductions.test_pooling import Case, close, windows
from tests.linalg.single import model_of, run_node
from tests.vector.kernel_harness import shared_cache

EPSILON = float(np.finfo(np.float32).eps)


def drawn(seed: int) -> tuple[np.ndarray, Case, bool]:
    """An image of few pixels, and windows that reach further on some axis."""
    r = np.random.default_rng(seed)
    rank = 1 + seed % 3
    size = r.integers(1, 6, rank)
    kernel = r.integers(1, (40, 16, 9)[rank - 1], rank)
    kernel[r.integers(rank)] += 6
    dilations = r.integers(1, 4, rank)
    span = (kernel - 1) * dilations + 1
    low = np.array([int(r.integers(0, k)) for k in kernel])
    high = np.maximum(span - size - low, 0)  # one window fits
    high = np.minimum(high + r.integers(0, 4, rank), np.maximum(high, kernel - 1))
    case = {
        "kernel_shape": kernel, "strides": r.integers(1, 5, rank),
        "dilations": dilations, "pads": np.concatenate([low, high]),
    }  # fmt: skip
    x = r.standard_normal((2, 3, *size)).astype(np.float32)
    numbers = {name: [int(n) for n in row] for name, row in case.items()}
    return x, numbers, bool(r.integers(2))


@pytest.mark.drawn(one_in=3)
@pytest.mark.parametrize("seed", range(24))
def test_averages_and_norms(seed: int) -> None:
    x, case, ceil = drawn(seed)
    values, inside, counted = windows(x.astype(np.float64), case, ceil, 0)
    met = inside.any(tuple(range(1, inside.ndim))).sum()
    for op, words in (
        ("AveragePool", {"count_include_pad": 0}),
        ("AveragePool", {"count_include_pad": 1}),
        ("LpPool", {"p": 2}),
    ):
        (got,) = run_node(op, [x], **case, **words, ceil_mode=int(ceil))
        count = (counted if words.get("count_include_pad") else inside).sum(0)
        with np.errstate(invalid="ignore"):
            sums = values.sum(0), abs(values).sum(0)
            right, size = (s / count for s in sums)
        if op == "LpPool":
            right = size = np.sqrt((values**2).sum(0))
        bound = (met + 4) * EPSILON * size
        some = inside.any(0) & np.ones(right.shape, bool)
        assert got.shape == right.shape
        assert (abs(got - right) <= bound)[some].all()
        assert not some.any() or not (abs(0 * got - right) <= bound)[some].all()


@pytest.mark.drawn(one_in=3)
@pytest.mark.parametrize("seed", range(24))
def test_maxima_and_their_places(seed: int) -> None:
    x, case, ceil = drawn(seed)
    words = {**case, "ceil_mode": int(ceil)}
    right, inside = (f for f in windows(x, case, ceil, -np.inf)[:2])
    some = inside.any(0) & np.ones(right.shape[1:], bool)
    (alone,) = run_node("MaxPool", [x], **words)
    got, places = run_node("MaxPool", [x], outputs=2, **words)
    assert (alone == right.max(0))[some].all() and alone.shape == right.shape[1:]
    assert (got == right.max(0))[some].all()
    assert (x.reshape(-1)[places[some]] == got[some]).all()
    whole = (100 * x).astype(np.int8)
    right = windows(whole, case, ceil, -128)[0].max(0)
    assert (run_node("MaxPool", [whole], **words)[0] == right)[some].all()


@pytest.mark.parametrize("p", [1, 3])
def test_another_norm(p: int) -> None:
    x = np.random.default_rng(p).standard_normal((1, 2, 3, 4)).astype(np.float32)
    words = {"kernel_shape": [21, 30], "pads": [10, 15, 10, 14]}
    (got,) = run_node("LpPool", [x], p=p, **words)
    whole = (abs(x.astype(np.float64)) ** p).sum((2, 3)) ** (1 / p)
    right = np.broadcast_to(whole[..., None, None], got.shape)
    assert close(got, right, 32 * EPSILON * right)
    assert not close(0 * got, right, 32 * EPSILON * right)


def test_neighbours_beyond_the_channels() -> None:
    """LRN over more channels than there are: its divisor is what the model says."""
    x = np.random.default_rng(3).standard_normal((2, 4, 3)).astype(np.float32)
    (got,) = run_node("LRN", [x], size=101, alpha=2.0)
    total = (x.astype(np.float64) ** 2).sum(1, keepdims=True)
    right = x / (total * (2.0 / 101) + 1.0) ** 0.75
    assert close(got, right, 32 * EPSILON * abs(right))
    assert not close(x, right, 32 * EPSILON * abs(right))


def work(program: Program) -> int:
    """The most points that a stage of any kernel visits."""
    return max(
        prod(int(axis.extent) for axis in stage.axes)
        for kernel in program.kernels.values()
        for stage in kernel.nest.stages
    )


def program_of(op: str, shape: tuple[int, ...], **words: Any) -> Program:
    model, _ = model_of(op, [np.zeros(shape, np.float32)], words, version=17)
    return partition_model(load(model), CompileOptions(by_name("x86-64-v3")), Report())


@pytest.mark.parametrize(
    ("op", "words", "most"),
    [
        ("AveragePool", {"kernel_shape": [1280] * 2, "ceil_mode": 1}, 4),
        ("AveragePool", {"kernel_shape": [1280] * 2, "auto_pad": "SAME_UPPER"}, 36),
        ("LpPool", {"kernel_shape": [65] * 2, "pads": [32] * 4}, 36),
        ("MaxPool", {"kernel_shape": [65] * 2, "dilations": [2] * 2,
                     "pads": [64] * 4}, 4),
    ],
)  # fmt: skip
def test_work_is_what_lies_inside(op: str, words: dict[str, Any], most: int) -> None:
    """Of each pixel, and a window each: two, or three where windows begin at each."""
    strides = [1280, 1280] if "ceil_mode" in words else [1, 1]
    program = program_of(op, (1, 32, 2, 2), strides=strides, **words)
    assert 32 <= work(program) <= 32 * most


def test_work_of_neighbours() -> None:
    assert work(program_of("LRN", (1, 4, 30), size=1001)) <= 4 * 30 * 7


@pytest.mark.parametrize("kernel, stride, pad", [(7, 7, 0), (5, 3, 0), (6, 4, 1)])
def test_a_window_that_reaches_beyond_by_less_than_a_stride(
    kernel: int, stride: int, pad: int
) -> None:
    """It stands all the same, as ONNX's inference and its runtimes have it."""
    x = np.float32([[[1, 2, 3]]])
    words: dict[str, Any] = {
        "kernel_shape": [kernel], "strides": [stride], "pads": [pad, pad]
    }  # fmt: skip
    assert run_node("MaxPool", [x], **words)[0].tolist() == [[[3]]]
    assert run_node("AveragePool", [x], **words)[0].tolist() == [[[2]]]
    counts = run_node("AveragePool", [x], count_include_pad=1, **words)[0]
    assert counts.tolist() == [[[np.float32(6 / (3 + 2 * pad))]]]
    norm = run_node("LpPool", [x], p=1, **words)[0]
    assert norm.tolist() == [[[6]]]


def test_a_window_that_reaches_further_is_refused() -> None:
    sentence = r"its output would have the shape \[1, 1, -1\]; look at the model"
    with pytest.raises(nanoloom.Error, match=sentence):
        run_node("MaxPool", [np.ones((1, 1, 3), np.float32)], kernel_shape=[5])


def pool(shape: tuple[int | str, ...], op: str, **words: Any) -> onnx.ModelProto:
    float32 = onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        [helper.make_node(op, ["x"], ["y"], **words)],
        "pool",
        [helper.make_tensor_value_info("x", float32, shape)],
        [onnx.ValueInfoProto(name="y")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])


@pytest.mark.drawn
@pytest.mark.parametrize("op", ["AveragePool", "MaxPool", "LpPool"])
@pytest.mark.parametrize("shape", [("n", 4, 3, 5), ("n", 4, "h", "w")])
def test_extents_that_are_sizes(op: str, shape: tuple[int | str, ...]) -> None:
    """Compiled once: of known images without those taps, of others with all."""
    words: dict[str, Any] = {"kernel_shape": [31, 31], "pads": [15] * 4}
    model = pool(shape, op, **words)
    program = nanoloom.compile(model, threads=1, cache=shared_cache())
    for batch, height, width in ((1, 3, 5), (3, 3, 5), (2, 40, 7), (2, 64, 33)):
        if "h" not in shape and height != 3:
            continue
        x = np.random.default_rng(batch).standard_normal(
            (batch, 4, height, width), np.float32
        )
        right = run_node(op, [x.astype(np.float64)], **words)[0]
        got = program({"x": x})["y"]
        bound = np.asarray((31 * 31 + 8) * EPSILON * max(float(abs(right).max()), 1))
        assert close(got, right, bound)
    assert not program.open.reason and len(program.variants) <= 4
