"""Older names of ONNX's operators, and an LSTM, against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nanoloom.errors import Unsupported
from tests.frontend.microsoft.single import both, check, floats, run

Array = np.ndarray
R = np.random.default_rng(1)
IMAGES, GRID = floats(R, 2, 3, 5, 6), floats(R, 2, 4, 3, 2)
MOVED: list[tuple[str, list[Array | None], dict[str, Any]]] = [
    ("Pad", [floats(R, 3, 4), np.array([1, 0, 2, 1]), np.array([0.5], np.float32)],
     {"constants": (1, 2)}),
    ("Pad", [floats(R, 3, 4), np.array([[1, 0, 2, 1]])],
     {"constants": (1,), "mode": "reflect"}),
    ("Range", [np.float32(1), np.float32(7)], {"constants": (0, 1)}),
    ("Range", [np.array([1]), np.array([9]), np.array([2])],
     {"constants": (0, 1, 2)}),
    ("ExpandDims", [floats(R, 3, 4), np.array(-1, np.int32)], {"constants": (1,)}),
    ("Trilu", [floats(R, 3, 5), np.array(1)], {"constants": (1,), "upper": 0}),
    ("Trilu", [floats(R, 2, 3, 5)], {}),
    ("GatherND", [floats(R, 3, 4, 2), np.array([[1, 2], [0, 3]], np.int32)], {}),
    ("Unique", [np.array([3, 1, 3, 2, 1], np.float32)], {"outputs": (True,) * 3}),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(MOVED)))
def test_moved(case: int) -> None:
    name, inputs, options = MOVED[case]
    given = [None if x is None else np.asarray(x) for x in inputs]
    ours, theirs = both(name, given, opset=11, **options)
    for one, other in zip(ours, theirs, strict=True):
        assert one.shape == other.shape
        assert (one == other).all()
        assert one.any()


@pytest.mark.drawn
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("corners", [0, 1])
def test_sampled(mode: str, padding: str, corners: int) -> None:
    ours, theirs = both(
        "GridSample", [IMAGES, GRID], mode=mode, padding_mode=padding, opset=11,
        align_corners=corners,
    )  # fmt: skip
    check((ours[0], theirs[0]), theirs[0], 60, 32)


def test_transposed_convolution() -> None:
    x, w = floats(R, 1, 3, 5, 5), floats(R, 3, 2, 3, 3)
    ours, theirs = both(
        "ConvTransposeWithDynamicPads", [x, w, np.array([1, 1, 0, 1])], constants=(2,),
        strides=[2, 2],
    )  # fmt: skip
    wide = np.zeros((1, 2, 11, 11))
    for i in range(5):
        for j in range(5):
            taps = np.einsum("nc,cohw->nohw", x[:, :, i, j].astype(np.float64), w)
            wide[:, :, 2 * i : 2 * i + 3, 2 * j : 2 * j + 3] += taps
    check((ours[0], theirs[0]), wide[:, :, 1:, 1:10], 30, 32)


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean"])
def test_distances(metric: str) -> None:
    a, b = floats(R, 3, 7), floats(R, 5, 7)
    ours, theirs = both("CDist", [a, b], metric=metric)
    exact = ((a.astype(np.float64)[:, None] - b) ** 2).sum(-1)
    exact = exact if metric == "sqeuclidean" else np.sqrt(exact)
    check((ours[0], theirs[0]), exact, 40, abs(exact) + 8)


@pytest.mark.parametrize(
    ("name", "inputs", "options", "reason"),
    [
        ("CDist", [GRID[0, 0], GRID[0, 0]], {"metric": "cosine"},
         "its attribute metric = cosine is not supported"),
        ("ConvTransposeWithDynamicPads",
         [IMAGES, floats(R, 3, 2, 3, 3), np.array([1, 1, 0, 1])], {},
         "its pads x2 are computed"),
    ],
)  # fmt: skip
def test_refusals(
    name: str, inputs: list[Array], options: dict[str, Any], reason: str
) -> None:
    with pytest.raises(Unsupported, match=reason):
        run(name, inputs, **options)


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize("by_gate", [False, True])
def test_lstm(by_gate: bool) -> None:
    """Weights are dequantized; ONNX Runtime quantizes the steps, too: an 8-bit error.

    Each product of a gate then is off by 9 numbers of up to half a step of 4 / 255.
    Weights have 7 bits: where a CPU has no VNNI, its sums of two products saturate.
    """
    w, r = (R.integers(-64, 64, (1, n, 12)).astype(np.int8) for n in (4, 3))
    shape = (1, 12) if by_gate else (1,)
    scales = [(0.008 + 0.008 * R.random(shape)).astype(np.float32) for _ in range(2)]
    zeros = [np.zeros(shape, np.int8), np.full(shape, 0 if by_gate else 5, np.int8)]
    x, bias = floats(R, 5, 2, 4), floats(R, 1, 24)
    given = [x, w, r, bias, *[None] * 4, scales[0], zeros[0], scales[1], zeros[1]]
    ours, theirs = both(
        "DynamicQuantizeLSTM", given, constants=(1, 2, 8, 9, 10, 11), hidden_size=3,
        outputs=(True,) * 3,
    )  # fmt: skip
    matrices = [
        ((m.astype(np.float64) - z[..., None, :].astype(np.float64)) * s[..., None, :])[
            0
        ]
        if by_gate
        else ((m.astype(np.float64) - z[0]) * s[0])[0]
        for m, s, z in zip((w, r), scales, zeros, strict=True)
    ]
    h, c = np.zeros((2, 3)), np.zeros((2, 3))
    rows: list[Array] = []
    for step in x.astype(np.float64):
        gates = step @ matrices[0] + h @ matrices[1] + bias[0, :12] + bias[0, 12:]
        i, o, f, g = np.split(gates, 4, -1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        rows.append(h)
    check((ours[0], ours[0]), np.array(rows)[:, None], 400, 1)
    check((ours[2], ours[2]), c[None], 400, 2)
    assert abs(ours[0] - theirs[0]).max() < 9 * 0.5 * 4 / 255


def test_a_sample_operator_gives_what_it_takes() -> None:
    x = np.arange(35, dtype=np.float32).reshape(5, 7)
    (ours,), (theirs,) = both("SampleOp", [x])
    assert ours.tobytes() == theirs.tobytes() == x.tobytes()
