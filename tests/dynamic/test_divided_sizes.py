"""Sizes that a model divides and rounds down itself; floors that samples confuse."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

import nanoloom
from nanoloom.cache import Cache
from nanoloom.dynamic.size_predicates import is_whole
from tests.dynamic.models import wanted

HEAD = '<ir_version: 10, opset_import: ["" : 20]>\n'
# What an exporter writes of x.flatten(2): it counts the windows from the image's sides.
COUNTED = """
g (float[n, 2, h, w] x) => (float[n, 3, p] y)
{
    zero = Constant<value = int64[1] {0}>()
    two = Constant<value = int64[1] {2}>()
    end = Constant<value = int64[1] {4}>()
    one = Constant<value = int64[1] {1}>()
    three = Constant<value = int64[1] {3}>()
    taps = Constant<value = int64[1] {TAPS}>()
    step = Constant<value = int64[1] {STEP}>()
    c = Conv<strides = [STEP, STEP]>(x, w0)
    batch = Shape<end = 1>(x)
    sides = Shape<start = 2>(x)
    room = Sub(sides, taps)
    QUOTIENT
    count = Add(steps, one)
    pixels = ReduceProd<keepdims = 1>(count)
    shape = Concat<axis = 0>(batch, three, pixels)
    y = Reshape(c, shape)
}
"""
TRUNCATED = "steps = Div(room, step)"
FLOORED = """rest = Mod(room, step)
    whole = Sub(room, rest)
    steps = Div(whole, step)"""
# 213 and 227 columns are 14 and 15 of 16, and 7 both of 32.
CONFUSED = """
g (float[n, 2, h, w] x) => (float[n, 3, hh, ww] y)
{
    c = Conv<strides = [16, 16], pads = [0, 0, 15, 15]>(x, w0)
    y = Conv<strides = [2, 2]>(c, w1)
}
"""


def model(text: str, *filters: tuple[int, ...]) -> onnx.ModelProto:
    """Weights are small integers: sums are exact."""
    random, made = np.random.default_rng(3), parser.parse_model(HEAD + text)
    for place, shape in enumerate(filters):
        weight = random.integers(-2, 3, shape).astype(np.float32)
        made.graph.initializer.append(numpy_helper.from_array(weight, f"w{place}"))
    return made


def require_open(
    made: onnx.ModelProto,
    folder: Path,
    least: int,
    others: Mapping[str, tuple[int, ...]] | None = None,
) -> None:
    """One program, and right.  others: inputs beside x, by the extents of a row."""
    program = nanoloom.compile(made, threads=1, cache=Cache(folder))
    random = np.random.default_rng(least)
    for n, h, w in ((2, 77, 46), (1, least, 113), (3, 60, 59)):
        shapes = {"x": (2, h, w)} | dict(others or {})
        given = {
            name: random.integers(-3, 4, (n, *row)).astype(np.float32)
            for name, row in shapes.items()
        }
        right = wanted(made, given)["y"]
        assert right.any()
        assert np.array_equal(program(given)["y"], right)
    assert program.open.reason == ""


@pytest.mark.parametrize(
    ("taps", "step", "quotient"),
    [(3, 2, TRUNCATED), (7, 5, TRUNCATED), (4, 3, FLOORED)],
)
def test_windows_that_the_model_counts(
    taps: int, step: int, quotient: str, tmp_path: Path
) -> None:
    text = COUNTED.replace("TAPS", str(taps)).replace("STEP", str(step))
    made = model(text.replace("QUOTIENT", quotient), (3, 2, taps, taps))
    require_open(made, tmp_path, taps)


# As many columns as a part of x has, counted before anything else is asked of them.
PARTS = """
g (float[3, w] x) => (float[3, v] y)
{
    long = Shape<start = 1>(x)
    zero = Constant<value = int64[1] {0}>()
    one = Constant<value = int64[1] {1}>()
    less = Constant<value = int64[1] {OFF}>()
    step = Constant<value = int64[1] {STEP}>()
    room = Add(long, less)
    part = Div(room, step)
    three = Constant<value = int64[1] {3}>()
    column = Slice(x, zero, one, one)
    shape = Concat<axis = 0>(three, part)
    y = Expand(column, shape)
}
"""


@pytest.mark.parametrize(("less", "step"), [(0, 2), (-1, 3), (1, 7)])
def test_divided_before_all_else(less: int, step: int, tmp_path: Path) -> None:
    """No operator has windows: the division alone asks for samples with floors."""
    made = model(PARTS.replace("OFF", str(less)).replace("STEP", str(step)))
    program = nanoloom.compile(made, threads=1, cache=Cache(tmp_path))
    for w in (9, 26, 120, 41):
        x = np.arange(3 * w, dtype=np.float32).reshape(3, w)
        right = wanted(made, {"x": x})["y"]
        assert right.size and np.array_equal(program({"x": x})["y"], right)
    assert program.open.reason == ""


def test_quotients_below_0_are_no_floors(tmp_path: Path) -> None:
    """-1 // 2 is 0 in ONNX: rows of fewer columns than 3 are another program."""
    text = """
    g (float[2, w] x) => (float[2, v] y)
    {
        sides = Shape<start = 1>(x)
        taps = Constant<value = int64[1] {3}>()
        two = Constant<value = int64[1] {2}>()
        room = Sub(sides, taps)
        half = Div(room, two)
        more = Add(half, two)
        zero = Constant<value = int64[1] {0}>()
        one = Constant<value = int64[1] {1}>()
        y = Slice(x, zero, more, one)
    }
    """
    made = model(text)
    program = nanoloom.compile(made, threads=1, cache=Cache(tmp_path))
    for w in (9, 2, 1, 120):
        x = np.arange(2 * w, dtype=np.float32).reshape(2, w)
        assert np.array_equal(program({"x": x})["y"], wanted(made, {"x": x})["y"])


def test_floors_that_samples_confuse(tmp_path: Path) -> None:
    require_open(model(CONFUSED, (4, 2, 16, 16), (3, 4, 2, 2)), tmp_path, 17)


# As many pixels as a sample of a small image leaves, met by 7 of 9 taps.
LARGE_FILTERS = """
g (float[n, 2, h, w] x) => (float[n, 3, hh, ww] y)
{
    c = Conv<strides = [64, 64], pads = [0, 0, 63, 63]>(x, w0)
    y = Conv<pads = [4, 4, 4, 4], group = 3>(c, w1)
}
"""


def test_filters_larger_than_small_images(tmp_path: Path) -> None:
    require_open(model(LARGE_FILTERS, (3, 2, 1, 1), (3, 1, 9, 9)), tmp_path, 90)


# The patches of an image in rows, for each of a batch.
PATCHES = """
    c = Conv<strides = [4, 4]>(x, w0)
    last = Transpose<perm = [0, 2, 3, 1]>(c)
    batch = Shape<end = 1>(x)
    three = Constant<value = int64[1] {3}>()
    all = Constant<value = int64[1] {-1}>()
    shape = Concat<axis = 0>(batch, all, three)
    rows = Reshape(last, shape)
"""
# A token in front of an image's patches, one for each row of a batch.
TOKENS = (
    """
g (float[n, 2, h, w] x, float[n, 1, 3] token) => (float[p, 2] y)
{"""
    + PATCHES
    + """    joined = Concat<axis = 1>(token, rows)
    flat = Concat<axis = 0>(all, three)
    tokens = Reshape(joined, flat)
    y = MatMul(tokens, w1)
}
"""
)


def test_a_token_beside_patches(tmp_path: Path) -> None:
    made = model(TOKENS, (3, 2, 4, 4), (3, 2))
    require_open(made, tmp_path, 8, {"token": (1, 3)})


# What a codec does: its frames are decoded, and cut to as many samples as came in.
CODEC = """
g (float[n, 1, t] x) => (float[n, 1, u] y)
{
    frames = Conv<strides = [8]>(x, w0)
    made = ConvTranspose<strides = [8]>(frames, w1)
    two = Constant<value = int64[1] {2}>()
    zero = Constant<value = int64[1] {0}>()
    long = Shape<start = 2>(x)
    y = Slice(made, zero, long, two)
}
"""


def test_cut_to_what_came_in(tmp_path: Path) -> None:
    made = model(CODEC, (3, 1, 8), (3, 1, 8))
    program = nanoloom.compile(made, threads=1, cache=Cache(tmp_path))
    random = np.random.default_rng(1)
    for n, t in ((2, 77), (1, 8), (3, 4096)):
        x = random.integers(-3, 4, (n, 1, t)).astype(np.float32)
        right = wanted(made, {"x": x})["y"]
        assert right.any() and right.shape[2] == t - t % 8
        assert np.array_equal(program({"x": x})["y"], right)
    assert program.open.reason == ""


# Scores of all pairs of patches: in a batch, two numbers of rows and two of columns.
PAIRS = (
    """
g (float[n, 2, h, w] x) => (float[n, p, 3] y)
{"""
    + PATCHES
    + """    columns = Transpose<perm = [0, 2, 1]>(rows)
    scores = MatMul(rows, columns)
    kept = Relu(scores)
    turned = Transpose<perm = [0, 2, 1]>(kept)
    one = MatMul(kept, rows)
    other = MatMul(turned, rows)
    y = Add(one, other)
}
"""
)


def test_all_pairs_of_patches(tmp_path: Path) -> None:
    """Sums below 2 ** 24, which f32 has exactly."""
    require_open(model(PAIRS, (3, 2, 1, 1)), tmp_path, 8)


def test_nothing_is_known_of_what_has_no_numbers() -> None:
    """A walk notes no numbers of floats, and none of long tensors."""
    assert is_whole(np.array([4]), np.array([2]))
    assert not is_whole(None, None)
    assert not is_whole(np.array([4]), None)
