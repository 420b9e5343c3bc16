"""Images of any height and width: compiled once, exact at sizes that divide nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser
from onnx.reference import ReferenceEvaluator

import nanoloom
from nanoloom.cache import Cache
from nanoloom.graph import winograd
from nanoloom.inspect.dynamic_sizes import dynamic_sizes

HEAD = '<ir_version: 10, opset_import: ["" : 20]>\n'
SIZES = ((33, 47), (64, 96), (97, 130), (7, 5))
CHAIN = """
g (float[1, 3, h, w] x) => (float[1, 9, 1, 1] y)
{
    c0 = Conv<pads = [1, 1, 1, 1], strides = [2, 2]>(x, w0, b0)
    r0 = Relu(c0)
    p0 = MaxPool<kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]>(r0)
    c1 = Conv<pads = [1, 1, 1, 1]>(p0, w1)
    r1 = Relu(c1)
    y = GlobalAveragePool(r1)
}
"""
SKIP = """
g (float[1, 3, h, w] x) => (float[1, 5, hh, ww] y)
{
    c0 = Conv<pads = [1, 1, 1, 1]>(x, w0, b0)
    p0 = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(c0)
    c1 = Conv<pads = [1, 1, 1, 1]>(p0, w1)
    scales = Constant<value = float[4] {1.0, 1.0, 2.0, 2.0}>()
    u = Resize<mode = "nearest">(c1, , scales)
    j = Concat<axis = 1>(u, c0)
    y = Conv(j, w2)
}
"""
LARGER = SKIP.replace(
    'Resize<mode = "nearest">(c1, , scales)', "ConvTranspose<strides = [2, 2]>(c1, w5)"
)
WEIGHTS = {"w0": (6, 3, 3, 3), "b0": (6,), "w1": (9, 6, 3, 3), "w2": (5, 15, 1, 1),
           "w3": (64, 64, 3, 3), "w4": (64, 64, 3, 3), "w5": (9, 9, 2, 2)}  # fmt: skip


def model(text: str) -> onnx.ModelProto:
    random, made = np.random.default_rng(3), parser.parse_model(HEAD + text)
    for name, shape in WEIGHTS.items():
        if f"{name})" in text or f"{name}," in text:
            weight = random.standard_normal(shape).astype(np.float32) / 4
            made.graph.initializer.append(numpy_helper.from_array(weight, name))
    return made


def image(height: int, width: int) -> np.ndarray:
    random = np.random.default_rng(height * width)
    return random.standard_normal((1, 3, height, width)).astype(np.float32)


def is_open(program: nanoloom.Program, x: np.ndarray) -> bool:
    return program.open.bound({"x": x.shape}, 1) is not None


def wanted(made: onnx.ModelProto, x: np.ndarray) -> np.ndarray:
    (y,) = ReferenceEvaluator(made).run(None, {"x": x})
    return np.asarray(y)


@pytest.mark.parametrize("exact", [True, False])
def test_a_chain(tmp_path: Path, exact: bool) -> None:
    made = model(CHAIN)
    program = nanoloom.compile(made, threads=1, exact_conv=exact, cache=Cache(tmp_path))
    for size in SIZES:
        x = image(*size)
        y, right = program({"x": x})["y"], wanted(made, x)
        # 27 and 54 products of numbers of about 1: far below 1e-5 of them.
        assert np.abs(y - right).max() <= 1e-5 < np.abs(right).max(), size
        assert is_open(program, x)
    assert not program.open.reason


SQUARE = """
g (float[n, 3, m, m] x) => (float[n, tokens, 6] y, float[n, all] z)
{
    c0 = Conv<pads = [1, 1, 1, 1], strides = [2, 2]>(x, w0, b0)
    rows = Constant<value = int64[3] {0, 6, -1}>()
    r = Reshape(c0, rows)
    t = Transpose<perm = [0, 2, 1]>(r)
    y = Softmax<axis = 1>(t)
    z = Flatten(c0)
}
"""


def test_one_name_for_height_and_width(tmp_path: Path) -> None:
    """Its pixels are the square of a floor, which was no known function."""
    made = model(SQUARE)
    program = nanoloom.compile(made, threads=1, cache=Cache(tmp_path))
    for size in (8, 13, 47, 1):
        x = np.concatenate([image(size, size)] * 2)
        right = ReferenceEvaluator(made).run(None, {"x": x})
        for name, value in zip(("y", "z"), right, strict=True):
            assert np.abs(program({"x": x})[name] - value).max() <= 1e-5, (name, size)
        assert is_open(program, x)
    assert not program.open.reason


TILES = """
g (float[1, 64, h, w] x) => (float[1, 64, hh, ww] y)
{
    c0 = Conv<pads = [1, 1, 1, 1]>(x, w3)
    r0 = Relu(c0)
    c1 = Conv(r0, w4)
    y = Relu(c1)
}
"""


@pytest.mark.parametrize("tile", winograd.TILES)
@pytest.mark.parametrize(
    ("stride", "few"), [(1, ((5, 4), (3, 3))), (2, ((7, 5), (5, 6)))]
)
def test_tiles_that_end_with_an_image_or_behind_it(
    tmp_path: Path, tile: int, stride: int, few: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By Winograd's method, with a border and without, even and odd numbers."""
    monkeypatch.setattr(winograd, "best_tile", lambda *_: tile)
    made = model(TILES.replace("1]>", f"1], strides = [{stride}, {stride}]>"))
    program = nanoloom.compile(made, threads=1, cache=Cache(tmp_path))
    for height, width in ((34, 66), (33, 65), (35, 62), *few):
        random = np.random.default_rng(height)
        x = random.standard_normal((1, 64, height, width)).astype(np.float32)
        y, right = program({"x": x})["y"], wanted(made, x)
        # Of the largest number: 576 products twice, and the sums of tiles of 4.
        assert np.abs(y - right).max() <= 3e-5 * np.abs(right).max() > 0, x.shape
        assert is_open(program, x)


@pytest.mark.parametrize("few", [None, 2])
def test_few_pixels_and_many(
    tmp_path: Path, few: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two ways one runs: the last step is that of up to 28,826 pixels."""
    monkeypatch.setattr(winograd, "best_tile", lambda x, *_: 4 if x[0] == x[1] else few)
    made, sizes = model(CHAIN), ((170, 169), (170, 170), (13, 33), (97, 500))
    program = nanoloom.compile(made, threads=2, cache=Cache(tmp_path / "cache"))
    loaded = nanoloom.load(program.save(tmp_path / "chain.so"), threads=1)
    for size in sizes:
        x = image(*size)
        y, right = program({"x": x})["y"], wanted(made, x)
        assert np.abs(y - right).max() <= 1e-5 < np.abs(right).max(), size
        assert (loaded({"x": x})["y"] == y).all()
        variant = program.variant({"x": x})
        times = np.zeros(len(variant.library.steps), np.int64)
        variant({"x": x}, times)
        assert (times[-1] > 0) == (size[0] * size[1] <= 28826), size
        assert (times > 0).sum() < len(times)
        assert is_open(program, x)


@pytest.mark.parametrize("text", [SKIP, LARGER])
def test_a_skip_connection(tmp_path: Path, text: str) -> None:
    """Multiples of 32 are compiled once, others are variants."""
    made, cache = model(text), Cache(tmp_path)
    program = nanoloom.compile(made, threads=2, exact_conv=True, cache=cache)
    for size, opened in (((32, 64), True), ((96, 32), True), ((34, 70), False)):
        x = image(*size)
        y, right = program({"x": x})["y"], wanted(made, x)
        assert np.abs(y - right).max() <= 1e-5 < np.abs(right).max()
        assert is_open(program, x) == opened
    assert not program.open.reason
    said = dynamic_sizes(made, {}, Cache(tmp_path))
    assert (said.why, said.multiple) == ("", 32)


def test_a_library(tmp_path: Path) -> None:
    made = model(CHAIN)
    program = nanoloom.compile(made, threads=1, cache=Cache(tmp_path))
    loaded = nanoloom.load(program.save(tmp_path / "chain.so"), threads=1)
    assert loaded.inputs[0].shape == (1, 3, "h", "w")
    for size in ((33, 47), (64, 96)):
        x = image(*size)
        assert (loaded({"x": x})["y"] == program({"x": x})["y"]).all()


@pytest.mark.parametrize(
    ("node", "reason"),
    [
        ('Resize<axes = [2, 3], keep_aspect_ratio_policy = "not_larger">(x, , , sizes)',
         "one axis decides about the extents of all, and h and w are open; give them"),
    ],
)  # fmt: skip
def test_what_stays_a_variant(tmp_path: Path, node: str, reason: str) -> None:
    """It says why, the same for `nanoloom check`, and is computed."""
    text = f"""
    g (float[1, 3, h, w] x) => (float[1, 3, hh, ww] y)
    {{
        sizes = Constant<value = int64[2] {{12, 16}}>()
        y = {node}
    }}
    """
    made, cache = model(text), Cache(tmp_path)
    program = nanoloom.compile(made, threads=1, cache=cache)
    x = image(6, 8)
    assert np.abs(program({"x": x})["y"] - wanted(made, x)).max() <= 1e-5
    assert not is_open(program, x)
    assert reason in program.open.reason
    assert dynamic_sizes(made, {}, cache).why == program.open.reason
