"""Pools of what Winograd's method makes: in its kernel where windows are in tiles."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

import nanoloom
from nanoloom.linalg.builder.window import Window
from nanoloom.linalg.products.winograd import winograd
from nanoloom.linalg.reductions.pooling import pool
from nanoloom.target import Target
from tests.linalg.bounds import sample
from tests.linalg.products.test_winograd import convolved, magnitude
from tests.vector.checks import check, passes
from tests.vector.kernel_harness import (
    Array,
    Make,
    at_once,
    backwards,
    executable,
    program_of,
    targets,
)

TARGETS = pytest.mark.parametrize("target", targets(), ids=str)
# tile, images, height, width, channels, filters, window of the pool
INSIDE = [
    (4, 1, 8, 8, 16, 16, 2),
    (4, 2, 12, 20, 3, 33, 2),
    (4, 1, 8, 12, 5, 70, 4),
    (2, 1, 6, 10, 7, 9, 2),
]
ACROSS = [
    (4, 1, 7, 8, 5, 16, 2),
    (4, 2, 13, 9, 3, 17, 2),
    (3, 1, 6, 6, 4, 16, 2),
    (4, 1, 12, 12, 4, 16, 3),
]


def windows(case: tuple[int, ...]) -> tuple[Window, Window]:
    """Of a convolution that keeps the extents, and of a pool behind it."""
    _, _, high, wide, _, _, side = case
    ones = (1, 1)
    same = Window((3, 3), ones, ones, ones, ones, (high, wide), (high, wide))
    made = (high // side, wide // side)
    size, steps = (high, wide), (side, side)
    return same, Window(steps, steps, ones, (0, 0), (0, 0), size, made)


def arrays(case: tuple[int, ...]) -> tuple[Array, Array, Array]:
    """x [n, h, w, c], filters [f, c, 3, 3] and a bias [f]."""
    _, n, high, wide, channels, made, _ = case
    shapes = (n, high, wide, channels), (made, channels, 3, 3), (made,)
    x, w, bias = (sample(i, shape, "float32") for i, shape in enumerate(shapes))
    return x, w, bias


def block(case: tuple[int, ...], w: Array, bias: Array, *, twice: bool = False) -> Make:
    """A convolution, bias, ReLU and a pool; twice: what it reads is a result, too."""
    tile = case[0]
    same, pooled = windows(case)

    def make(b: Any, x: Any) -> Any:
        made = winograd(b, x, b.constant(w), same, tile, b.constant(bias))
        made = b.elementwise(lambda s: s.maximum(0), made)
        y = pool(b, made, pooled, -np.inf, lambda s, x: s.maximum(x))
        return [made, y] if twice else y

    return make


def pools(case: tuple[int, ...], **words: bool) -> int:
    """Kernels that are nothing but a pool."""
    x, w, bias = arrays(case)
    program = program_of(block(case, w, bias, **words), x)
    return sum(name.startswith("reduction") for name in program.kernels)


def largest(x: Array, case: tuple[int, ...]) -> Array:
    """Of each window of x [n, h, w, f]."""
    side = case[-1]
    n, high, wide, made = x.shape
    high, wide = high // side, wide // side
    whole = x[:, : high * side, : wide * side]
    return whole.reshape(n, high, side, wide, side, made).max((2, 4))


@pytest.mark.parametrize("case", INSIDE, ids=str)
def test_a_pool_within_tiles_is_no_kernel(case: tuple[int, ...]) -> None:
    assert pools(case) == 0


@pytest.mark.parametrize("case", ACROSS, ids=str)
def test_a_pool_across_tiles_is_one(case: tuple[int, ...]) -> None:
    assert pools(case) == 1


def test_a_largest_of_what_no_axis_moves_is_no_pool() -> None:
    """A table of one word's values: their reduction reads a number first."""
    model = onnx.parser.parse_model("""
        <ir_version: 10, opset_import: ["" : 20, "ai.onnx.ml" : 4]>
        g (int64[1] x) => (float[1] y)
        {
            y = ai.onnx.ml.LabelEncoder<default_float = 0.25,
                keys_int64s = [1, 2, 5], values_floats = [0.5, 1.0, -2.0]>(x)
        }
        """)
    program = nanoloom.compile(model, threads=1)
    got = [program({"x": np.array([n])})["y"].tolist() for n in (2, 3, 5)]
    assert got == [[1.0], [0.25], [-2.0]]


def test_what_others_read_too_is_in_memory() -> None:
    assert pools(INSIDE[0], twice=True) == 1


@pytest.mark.drawn(one_in=4)
@TARGETS
@pytest.mark.parametrize("case", [*INSIDE, *ACROSS], ids=str)
def test_numbers(case: tuple[int, ...], target: Target) -> None:
    """Tasks in any order give the same bits; of wrong windows the check fails."""
    x, w, bias = arrays(case)
    program = executable(program_of(block(case, w, bias), x), target)
    (got,), (again,) = program(x, order=at_once), program(x, order=backwards)
    assert np.array_equal(got, again)
    same, _ = windows(case)
    one, other = x.astype(np.float64), w.astype(np.float64)
    image = np.maximum(convolved(one, other, same) + bias, 0)
    size = largest(magnitude(one, other, same, case[0]) + abs(bias), case)
    steps = x.shape[-1] + 4 * (case[0] + 3)
    exact = largest(image, case)
    check(got, exact, steps, size)
    wrong = largest(np.roll(image, 1, 2), case)
    assert not passes(got, wrong, steps, size)
