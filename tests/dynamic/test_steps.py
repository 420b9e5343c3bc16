"""Slices with steps along sizes, and operators along axes beside their own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

import nanoloom
from nanoloom.cache import Cache

HEAD = '<ir_version: 10, opset_import: ["" : 20, "ai.onnx.ml" : 5]>'
SIZES = ((4, 6), (5, 9), (1, 2), (2, 1), (16, 33))
Made = Callable[[np.ndarray], np.ndarray]


def check(text: str, made: Made, tmp_path: Path, error: float = 0) -> None:
    """One program for all sizes gives what numpy does."""
    model = onnx.parser.parse_model(f"{HEAD} g {text}")
    program = nanoloom.compile(model, threads=1, cache=Cache(tmp_path))
    draw = np.random.default_rng(len(text))
    for size in SIZES:
        x = draw.standard_normal((2, 3, *size)).astype(np.float32)
        y, right = program({"x": x})["y"], made(x)
        assert not program.open.reason
        assert program.open.bound({"x": x.shape}, 1) is not None, size
        assert y.shape == right.shape
        assert (abs(y - right) <= error * abs(right)).all(), size
        assert right.any() and not (abs(0 * y - right) <= error * abs(right)).all()


def sliced(starts: str, ends: str, axes: str, steps: str) -> str:
    return f"""(float[2, 3, h, w] x) => (float[2, 3, a, b] y)
        <int64[2] s = {{{starts}}}, int64[2] e = {{{ends}}}, int64[2] n = {{{axes}}},
        int64[2] k = {{{steps}}}> {{ y = Slice(x, s, e, n, k) }}"""


FAR = 2**63 - 1


@pytest.mark.parametrize(
    ("words", "made"),
    [
        (("0, 0", f"{FAR}, {FAR}", "2, 3", "2, 3"), lambda x: x[:, :, ::2, ::3]),
        (("-1, 0", f"-{FAR}, {FAR}", "3, 2", "-1, 1"), lambda x: x[..., ::-1]),
        ((f"{FAR}, 0", f"-{FAR}, {FAR}", "2, 3", "-2, 2"),
         lambda x: x[:, :, ::-2, ::2]),
    ],
)  # fmt: skip
def test_steps(words: tuple[str, str, str, str], made: Made, tmp_path: Path) -> None:
    check(sliced(*words), made, tmp_path)


def test_a_focus(tmp_path: Path) -> None:
    """Every second pixel in four images, as the first layer of YOLOv5 has them."""
    parts = "".join(
        f"p{i}{j} = Slice(x, s{i}{j}, e, n, k) " for i in (0, 1) for j in (0, 1)
    )
    starts = ", ".join(
        f"int64[2] s{i}{j} = {{{i}, {j}}}" for i in (0, 1) for j in (0, 1)
    )
    text = f"""(float[1, 3, h, w] x) => (float[1, 12, a, b] y)
        <{starts}, int64[2] e = {{{FAR}, {FAR}}}, int64[2] n = {{2, 3}},
        int64[2] k = {{2, 2}}>
        {{ {parts} y = Concat<axis = 1>(p00, p10, p01, p11) }}"""
    program = nanoloom.compile(
        onnx.parser.parse_model(f"{HEAD} g {text}"), threads=1, cache=Cache(tmp_path)
    )
    for size in ((4, 6), (32, 64), (2, 2)):
        x = np.random.default_rng(1).standard_normal((1, 3, *size)).astype(np.float32)
        places = ((0, 0), (1, 0), (0, 1), (1, 1))
        right = np.concatenate([x[:, :, i::2, j::2] for i, j in places], 1)
        np.testing.assert_array_equal(program({"x": x})["y"], right)
    assert not program.open.reason


EPS = 2.0**-24


@pytest.mark.parametrize(
    ("node", "made", "error"),
    [
        ("LpNormalization<axis = 3, p = 1>(x)",
         lambda x: x / abs(x.astype(float)).sum(3, keepdims=True), 70 * EPS),
        ('Einsum<equation = "nchw->nchw">(x)', lambda x: x, 0),
        ("Shrink<lambd = 0.2>(x)", lambda x: np.where(abs(x) > 0.2, x, 0), 0),
        ("ai.onnx.ml.Binarizer<threshold = 0.3>(x)",
         lambda x: (x > np.float32(0.3)).astype(np.float32), 0),
    ],
)  # fmt: skip
def test_beside_sizes(node: str, made: Made, error: float, tmp_path: Path) -> None:
    text = f"(float[2, 3, h, w] x) => (float[2, 3, h, w] y) {{ y = {node} }}"
    check(text, made, tmp_path, error)


CLASSICAL = """(float[n, 3] x) => (float[n, m] y, float[n, 3] s, float[n, 2] l)
{
    s = ai.onnx.ml.Scaler<offset = [1.0, 2.0, -1.0], scale = [2.0, 0.5, 1.5]>(x)
    l = ai.onnx.ml.LinearRegressor<targets = 2,
        coefficients = [1.0, 2.0, 0.5, -1.0, 0.25, 4.0], intercepts = [0.5, -2.0]>(s)
    y = ai.onnx.ml.Normalizer<norm = "L1">(l)
}"""


def test_classical_models(tmp_path: Path) -> None:
    """A batch of any size, from their first operator to the last."""
    model = onnx.parser.parse_model(f"{HEAD} g {CLASSICAL}")
    program = nanoloom.compile(model, threads=1, cache=Cache(tmp_path))
    for rows in (1, 2, 33):
        x = np.random.default_rng(rows).standard_normal((rows, 3)).astype(np.float32)
        made = program({"x": x})
        scaled = (x.astype(float) - [1, 2, -1]) * [2, 0.5, 1.5]
        weights = np.array([[1, 2, 0.5], [-1, 0.25, 4]])
        terms = abs(scaled) @ abs(weights.T) + [0.5, 2]
        sums = scaled @ weights.T + [0.5, -2]
        assert (abs(made["s"] - scaled) <= 4 * EPS * (abs(x) + 2) * 2).all()
        # Each scaled number is a difference, whose terms are up to 2 larger.
        bound = 8 * EPS * (terms + 2 * abs(weights).sum(1) * 4)
        assert (abs(made["l"] - sums) <= bound).all()
        assert not (abs(made["l"]) <= bound).all()
        total = abs(made["l"].astype(float)).sum(1, keepdims=True)
        assert (abs(made["y"] - made["l"] / total) <= 4 * EPS).all()
    assert not program.open.reason


def test_one_window_of_a_known_axis(tmp_path: Path) -> None:
    """A single window whose border reaches further; the other axis is a size."""
    words = "kernel_shape = [2, 4], pads = [1, 0, 0, 1], strides = [1, 2]"
    text = f"""(float[1, 2, h, 4] x) => (float[1, 2, h, 1] y)
        {{ y = MaxPool<{words}>(x) }}"""
    model = onnx.parser.parse_model(f"{HEAD} g {text}")
    program = nanoloom.compile(model, threads=1, cache=Cache(tmp_path))
    for rows in (1, 2, 9):
        x = np.random.default_rng(rows).standard_normal((1, 2, rows, 4))
        x = x.astype(np.float32)
        most = x.max(3, keepdims=True)
        right = np.maximum(most, np.concatenate([most[:, :, :1], most[:, :, :-1]], 2))
        np.testing.assert_array_equal(program({"x": x})["y"], right)
    assert not program.open.reason


def test_constant_places(tmp_path: Path) -> None:
    """GatherND: elements that sizes must have."""
    text = """(float[h, w] x) => (float[3] y)
        <int64[3, 2] i = {0, 1, 1, -1, -2, 0}> { y = GatherND(x, i) }"""
    model = onnx.parser.parse_model(f"{HEAD} g {text}")
    program = nanoloom.compile(model, threads=1, cache=Cache(tmp_path))
    for size in ((2, 2), (7, 4)):
        x = np.random.default_rng(2).standard_normal(size).astype(np.float32)
        y = program({"x": x})["y"]
        np.testing.assert_array_equal(y, [x[0, 1], x[1, -1], x[-2, 0]])
        assert program.open.bound({"x": size}, 1) is not None
    assert program.open.bound({"x": (1, 4)}, 1) is None  # a row too few
    assert not program.open.reason


def test_more_dimensions_than_are_told_apart(tmp_path: Path) -> None:
    dims = ", ".join(f"d{i}" for i in range(24))
    text = f"(float[{dims}] x) => (float[{dims}] y) {{ y = Relu(x) }}"
    model = onnx.parser.parse_model(f"{HEAD} g {text}")
    program = nanoloom.compile(model, threads=1, cache=Cache(tmp_path))
    said = "24 dimensions are open, more than are told apart; give some of them numbers"
    assert program.open.reason == f"{said} (--dim d0=N --dim d1=N)"


@pytest.mark.parametrize("step", [1, 5])
@pytest.mark.parametrize("signal", ["x", "r"])
@pytest.mark.parametrize("shape", ["n", "batch, n"])
def test_frames_of_a_signal(tmp_path: Path, shape: str, signal: str, step: int) -> None:
    """STFT of any length, and every third sample of it, against float64."""
    first = "" if "batch" in shape else "1, "
    text = f"""(float[{first}{shape}] x) => (float[p, q] s, float[p, f, 9, 2] y)
        <int64 step = {{{step}}}, float[16] w = {{{", ".join(["0.5"] * 16)}}},
        int64[1] z = {{0}}, int64[1] e = {{{FAR}}}, int64[1] one = {{1}},
        int64[1] k = {{3}}, int64[1] last = {{2}}>
        {{ s = Slice(x, z, e, one, k)
        r = Unsqueeze(x, last)
        y = STFT<onesided = 1>({signal}, step, w) }}"""
    model = onnx.parser.parse_model(f"{HEAD} g {text}")
    program = nanoloom.compile(model, threads=1, cache=Cache(tmp_path))
    for rows, length in ((1, 16), (2, 17), (3, 100), (1, 401)):
        count = rows if "batch" in shape else 1
        x = np.random.default_rng(length).standard_normal((count, length))
        x = x.astype(np.float32)
        made = program({"x": x})
        assert not program.open.reason
        assert program.open.bound({"x": x.shape}, 1) is not None
        np.testing.assert_array_equal(made["s"], x[:, ::3])
        places = np.arange(0, length - 15, step)[:, None] + np.arange(16)
        spectrum = np.fft.rfft(0.5 * x.astype(float)[:, places], axis=-1)
        right = np.stack([spectrum.real, spectrum.imag], -1)
        bound = 40 * EPS * abs(x)[:, places].sum(-1)[..., None, None]
        assert made["y"].shape == right.shape
        assert (abs(made["y"] - right) <= bound).all()
        assert not (abs(0 * right - right) <= bound).all()
