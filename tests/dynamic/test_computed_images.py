"""Images that are made as large as other sizes say, by no polynomial: one program.

PyTorch's detectors resize to a shortest side and pad to a multiple, computed in floats.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

import nanoloom
from nanoloom.cache import Cache

Called = Callable[[dict[str, np.ndarray]], Mapping[str, np.ndarray]]
HEAD = '<ir_version: 10, opset_import: ["" : 20]>'
IMAGES = ((31, 47), (64, 20), (1, 9), (120, 97))
# Of an image x: as many pixels along its shortest side as `least`, rounded down.
SHORTEST = """
  s = Shape(x)  sides = Slice(s, two, four)  head = Slice(s, none, two)
  whole = Cast<to = 1>(sides)  short = ReduceMin<keepdims = 0>(whole)
  once = Reciprocal(short)  factor = Mul(once, least)
  scaled = Mul(whole, factor)  down = Floor(scaled)  pixels = Cast<to = 7>(down)
  extents = Concat<axis = 0>(head, pixels)
  made = Resize<mode = "linear">(x, , , extents)
"""
# Zeros behind the sides of an image `made`, up to a multiple of `over`, as PyTorch's
# exporter writes it: pads of the last axis first, in pairs.
PADDED = """
  t = Shape(made)  ends = Slice(t, two, four)  real = Cast<to = 1>(ends)
  parts = Div(real, over)  up = Ceil(parts)  full = Mul(up, over)
  goal = Cast<to = 7>(full)  more = Sub(goal, ends)
  high, wide = Split<axis = 0, num_outputs = 2>(more)
  all = Concat<axis = 0>(none, wide, none, high, zeros)
  matrix = Reshape(all, pairs)  turned = Slice(matrix, last, first, none, last)
  columns = Transpose<perm = [1, 0]>(turned)  flat = Reshape(columns, last)
  image = Pad(made, flat)
"""
CONSTANTS = """int64[1] none = {0}, int64[1] two = {2}, int64[1] four = {4},
  int64[1] last = {-1}, int64[1] first = {-9223372036854775807},
  int64[2] pairs = {-1, 2}, int64[4] zeros = {0, 0, 0, 0}, float least = {24},
  float over = {OVER}"""


def computed(over: int, padded: bool) -> onnx.ModelProto:
    """(x [1, 3, h, w]) -> the image and a convolution of it with stride 2."""
    constants = CONSTANTS.replace("OVER", str(over))
    made = onnx.parser.parse_model(f"""{HEAD}
g (float[1,3,h,w] x) => (float[1,3,a,b] image, float[1,8,c,d] y) <{constants}> {{
  {SHORTEST} {PADDED if padded else "image = Identity(made)"}
  y = Conv<strides = [2, 2], pads = [1, 1, 1, 1]>(image, w)
}}""")
    filters = np.random.default_rng(over).standard_normal((8, 3, 3, 3), np.float32)
    made.graph.initializer.append(onnx.numpy_helper.from_array(filters, "w"))
    return made


@pytest.mark.drawn
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("over", [4, 8, 32])
def test_one_program(tmp_path: Path, over: int, padded: bool) -> None:
    """Also where nothing is padded; a wrong pixel fails."""
    model = computed(over, padded)
    program = nanoloom.compile(model, threads=1, cache=Cache(tmp_path))
    require_right(program, model)
    assert not program.open.reason


def test_a_library(tmp_path: Path) -> None:
    model = computed(8, padded=True)
    cache = Cache(tmp_path / "cache")
    path = nanoloom.compile(model, cache=cache).save(tmp_path / "images.so")
    require_right(nanoloom.load(path), model)


def test_what_no_room_helps_is_compiled_for_each_size(tmp_path: Path) -> None:
    """A mean over as many pixels as the shorter side: no size of the reason is ours."""
    model = onnx.parser.parse_model(
        f"""{HEAD}
g (float[1,3,h,w] x) => (float[1,3,a,b] made, float[n,m] y) <{CONSTANTS}> {{
  {SHORTEST.replace("OVER", "1")}
  side = Cast<to = 7>(short)  row = Flatten<axis = 3>(made)
  half = Reshape(side, last)  y = Slice(row, none, half, none, half)
}}""".replace("OVER", "1")
    )
    program = nanoloom.compile(model, cache=Cache(tmp_path))
    x = np.random.default_rng(0).standard_normal((1, 3, 30, 40)).astype(np.float32)
    (_, y), got = exact_of(model, x), program({"x": x})
    assert abs(got["y"] - y).max() < 64 * 2.0**-24 * abs(x).max()
    assert "nanoloom_room" not in program.open.reason


def exact_of(model: onnx.ModelProto, x: np.ndarray) -> list[np.ndarray]:
    """What ONNX's reference makes of an image."""
    return [np.asarray(y) for y in ReferenceEvaluator(model).run(None, {"x": x})]


def require_right(program: Called, model: onnx.ModelProto) -> None:
    random = np.random.default_rng(7)
    for sides in IMAGES:
        x = random.standard_normal((1, 3, *sides)).astype(np.float32)
        made = program({"x": x})
        image, y = exact_of(model, x)
        assert made["image"].shape == image.shape
        assert abs(made["image"] - image).max() < 64 * 2.0**-24 * abs(x).max()
        assert abs(made["y"] - y).max() < 256 * 2.0**-24 * abs(y).max()
        assert not abs(made["y"] + 1 - y).max() < 256 * 2.0**-24 * abs(y).max()


def test_a_table_that_is_resized(tmp_path: Path) -> None:
    """Positions of an image's patches: ViT, DINOv2, Depth Anything."""
    random = np.random.default_rng(0)
    model = onnx.parser.parse_model(f"""{HEAD}
g (float[1,3,h,w] x) => (float[1,8,a,b] y) <int64[1] two = {{2}}, int64[1] four = {{4}},
    int64[2] head = {{1, 8}}> {{
  rows = Conv<strides = [4, 4]>(x, w)  s = Shape(rows)  sides = Slice(s, two, four)
  extents = Concat<axis = 0>(head, sides)
  positions = Resize<mode = "cubic">(table, , , extents)  y = Add(rows, positions)
}}""")
    for name, shape in {"w": (8, 3, 4, 4), "table": (1, 8, 5, 6)}.items():
        array = random.standard_normal(shape).astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    program = nanoloom.compile(model, cache=Cache(tmp_path))
    for sides in ((20, 24), (31, 47), (4, 9), (64, 85)):
        x = random.standard_normal((1, 3, *sides)).astype(np.float32)
        (exact,), got = exact_of(model, x), program({"x": x})["y"]
        bound = 128 * 2.0**-24 * (abs(exact).max() + abs(x).max())
        assert abs(got - exact).max() < bound
        assert not abs(got + 1 - exact).max() < bound
    assert not program.open.reason


@pytest.mark.parametrize("mode", ["linear", "nearest"])
def test_some_images_stay_as_they_are(tmp_path: Path, mode: str) -> None:
    """Made even along both sides, as MobileViT has it: one program for both kinds."""
    random = np.random.default_rng(0)
    model = onnx.parser.parse_model(f"""{HEAD}
g (float[1,3,h,w] x) => (float[1,4,a,b] y) <int64[1] two = {{2}}, int64[1] four = {{4}},
    int64[2] head = {{1, 8}}, int64[1] one = {{1}}> {{
  rows = Conv<strides = [8, 8]>(x, w)  s = Shape(rows)  sides = Slice(s, two, four)
  more = Add(sides, one)  half = Div(more, two)  even = Mul(half, two)
  extents = Concat<axis = 0>(head, even)
  image = Resize<mode = "{mode}">(rows, , , extents)  y = Conv(image, last)
}}""")
    for name, shape in {"w": (8, 3, 8, 8), "last": (4, 8, 1, 1)}.items():
        array = random.standard_normal(shape).astype(np.float32) / 8
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    program = nanoloom.compile(model, cache=Cache(tmp_path))
    for sides in ((96, 64), (160, 32), (32, 96), (224, 256)):
        x = random.standard_normal((1, 3, *sides)).astype(np.float32)
        (exact,), got = exact_of(model, x), program({"x": x})["y"]
        bound = 512 * 2.0**-24 * abs(exact).max()
        assert abs(got - exact).max() < bound
        assert not abs(got + 1 - exact).max() < bound
    assert not program.open.reason


def test_the_next_process_knows(tmp_path: Path) -> None:
    """What one has found out, another one takes from the cache."""
    model, cache = computed(8, padded=False), Cache(tmp_path)
    for _ in range(2):
        program = nanoloom.compile(model, cache=cache)
        assert program.roomed.decided() and not program.open.reason
    nanoloom.compile(model, cache=cache).save(tmp_path / "images.so")
