"""Nodes that once asked for known sizes: one program, at sizes that divide nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import nanoloom
from nanoloom.cache import Cache
from nanoloom.compiler import Report

HEAD = '<ir_version: 10, opset_import: ["" : 20]>'
BORDER = "pads = Constant<value_ints = [0, 0, 1, 2, 0, 0, 2, 0]>()"
PADS = ((0, 0), (0, 0), (1, 2), (2, 0))
IMAGE = "float[1, 5, h, w] x"
EPS = np.finfo(np.float32).eps
LEAST = {"reflect": 3, "edge": 1, "wrap": 2}  # rows: no shorter axis has its pads


def sizes(least: int, seed: int) -> list[tuple[int, int]]:
    """Drawn ones behind the least ones."""
    drawn = np.random.default_rng(seed).integers(least, 61, (5, 2)).tolist()
    return [(least, 7), (7, least), (least, least), *drawn]


def model(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(f"{HEAD} g {text}")


class OneProgram:
    """A program that fails where it compiles again, as for a size of its own."""

    def __init__(self, text: str, folder: Path) -> None:
        self.report = Report()
        cache = Cache(folder)
        self.program = nanoloom.compile(model(text), cache=cache, report=self.report)
        self.kernels: int | None = None

    def __call__(self, x: np.ndarray) -> np.ndarray:
        y = self.program({"x": x})["y"]
        assert not self.program.open.reason
        shapes = {"x": x.shape}
        assert self.program.open.bound(shapes, 1) is not None, shapes
        self.kernels = self.kernels or self.report.kernels
        assert self.report.kernels == self.kernels
        return np.asarray(y)


@pytest.mark.parametrize("mode", LEAST)
def test_borders_of_own_rows(tmp_path: Path, mode: str) -> None:
    text = f'({IMAGE}) => (float[1, 5, a, b] y) {{ {BORDER} y = Pad<mode = "{mode}">'
    pad = OneProgram(text + "(x, pads) }", tmp_path)
    random = np.random.default_rng(1)
    for h, w in sizes(LEAST[mode], 2):
        x = random.standard_normal((1, 5, h, w), np.float32)
        crops = [slice(a, a + n) for (a, _), n in zip(PADS, x.shape, strict=True)]
        y, right = pad(x), np.pad(x, PADS, mode=mode)  # type: ignore[call-overload] - one of its modes
        np.testing.assert_array_equal(y, right)
        zeros = np.zeros_like(right)
        zeros[tuple(crops)] = x
        assert (y != zeros).any()


def test_more_border_than_rows_is_a_variant(tmp_path: Path) -> None:
    """One row, with two to wrap around to it: a size of its own."""
    text = f'({IMAGE}) => (float[1, 5, a, b] y) {{ {BORDER} y = Pad<mode = "wrap">'
    program = nanoloom.compile(model(text + "(x, pads) }"), cache=Cache(tmp_path))
    x = np.random.default_rng(3).standard_normal((1, 5, 9, 9)).astype(np.float32)
    for image in (x, x[:, :, :1], x[:, :, :, :1]):
        right = np.pad(image, PADS, mode="wrap")
        np.testing.assert_array_equal(program({"x": image})["y"], right)


def test_neighbouring_channels(tmp_path: Path) -> None:
    attributes = "size = 3, alpha = 0.5, beta = 0.75, bias = 1.5"
    text = f"({IMAGE}) => (float[1, 5, h, w] y) {{ y = LRN<{attributes}>(x) }}"
    lrn, random = OneProgram(text, tmp_path), np.random.default_rng(4)
    for h, w in sizes(1, 5):
        x = random.standard_normal((1, 5, h, w), np.float32)
        squares = np.pad(x.astype(np.float64) ** 2, ((0, 0), (1, 1), (0, 0), (0, 0)))
        total = squares[:, :-2] + squares[:, 1:-1] + squares[:, 2:]
        right = x / (1.5 + 0.5 / 3 * total) ** 0.75
        # A sum of three, a product, a sum, a power of 2 units, a quotient.
        assert (abs(lrn(x) - right) <= 12 * EPS * abs(right)).all()
        assert not (abs(x - right) <= 12 * EPS * abs(right)).all()


def test_one_hot(tmp_path: Path) -> None:
    text = """(int64[h, w] x) => (float[h, 7, w] y) <int64 depth = {7},
        float[2] v = {-1, 2}> { y = OneHot<axis = 1>(x, depth, v) }"""
    encode, random = OneProgram(text, tmp_path), np.random.default_rng(6)
    for h, w in sizes(1, 7):
        x = random.integers(-9, 9, (h, w))
        place = np.where(x < 0, x + 7, x)[:, None]
        right = np.where(place == np.arange(7)[None, :, None], 2, -1)
        np.testing.assert_array_equal(encode(x), right)


@pytest.mark.parametrize("k", [-2, 0, 3])
def test_diagonal(tmp_path: Path, k: int) -> None:
    text = f"(float[h, w] x) => (float[h, w] y) {{ y = EyeLike<k = {k}>(x) }}"
    eye = OneProgram(text, tmp_path)
    for h, w in sizes(1, 8):
        x = np.zeros((h, w), np.float32)
        np.testing.assert_array_equal(eye(x), np.eye(h, w, k))


@pytest.mark.parametrize("left, right", [("uint8", "uint8"), ("int8", "int8")])
def test_products_of_two_results_in_8_bits(left: str, right: str) -> None:
    """Queries and keys: neither is packed, whatever a CPU multiplies them by."""
    text = f"""({left}[n, 2, l, 8] a, {right}[n, 2, 8, m] b)
        => (int32[n, 2, l, m] y) {{ y = MatMulInteger(a, b) }}"""
    program = nanoloom.compile(model(text))
    random = np.random.default_rng(3)
    for n, rows, columns in ((2, 13, 11), (1, 1, 1), (3, 40, 67)):
        a = random.integers(0, 128, (n, 2, rows, 8)).astype(left)
        b = random.integers(0, 128, (n, 2, 8, columns)).astype(right)
        y = program({"a": a, "b": b})["y"]
        assert not program.open.reason
        assert np.array_equal(y, a.astype(int) @ b.astype(int))


def test_transposed_convolution_with_phases_of_fewer_taps() -> None:
    text = """(float[1, 5, h, w] x, float[5, 18, 3, 3] filters)
        => (float[1, 18, a, b] y) { y = ConvTranspose<strides = [2, 2]>(x, filters) }"""
    program = nanoloom.compile(model(text))
    random = np.random.default_rng(4)
    filters = random.standard_normal((5, 18, 3, 3), np.float32)
    for h, w in sizes(1, 6):
        x = random.standard_normal((1, 5, h, w), np.float32)
        y = program({"x": x, "filters": filters})["y"]
        assert not program.open.reason
        right = np.zeros((1, 18, 2 * h + 1, 2 * w + 1))
        size = np.zeros_like(right)
        for i, j in np.ndindex(3, 3):
            place = (slice(None), slice(None), slice(i, i + 2 * h, 2),
                     slice(j, j + 2 * w, 2))  # fmt: skip
            tap = filters[:, :, i, j].astype(float)
            right[place] += np.einsum("nchw,cf->nfhw", x.astype(float), tap)
            size[place] += np.einsum("nchw,cf->nfhw", abs(x).astype(float), abs(tap))
        assert (abs(y - right) <= 21 * EPS * size).all()
        assert not (abs(y * 1.01 - right) <= 21 * EPS * size).all()
