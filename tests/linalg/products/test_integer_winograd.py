"""Winograd's method on integers: every sum exact, up to the last bit that there is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nanoloom.graph.winograd import LOST, STRIDES, TILES
from nanoloom.linalg.builder.window import Window
from nanoloom.linalg.products.integer_winograd import (
    INT16,
    IntegerFilters,
    integer_transforms,
    integer_winograd,
)
from nanoloom.target import Target, by_name
from tests.linalg.bounds import sample
from tests.linalg.products.test_winograd import convolved, window_of
from tests.vector.checks import check
from tests.vector.kernel_harness import Array, backwards, run, targets
from tests.vector.nanokernel.reference import machine

EACH_TILE = pytest.mark.parametrize("tile", TILES)
EACH_STRIDE = pytest.mark.parametrize("stride", STRIDES)


@EACH_TILE
@EACH_STRIDE
def test_one_dimension_is_exact_modulo_a_power_of_two(tile: int, stride: int) -> None:
    given = integer_transforms(tile, stride)
    d, g = np.arange(3, stride * (tile - 1) + 6), np.array([5, -3, 2])
    image, filters, result = (
        matrix.astype(np.int64) for matrix in (given.image, given.filters, given.result)
    )
    got = result @ ((filters @ g) * (image @ d))
    wanted = np.correlate(d, g, "valid")[::stride] * 2 ** (given.bits // 2)
    assert ((got - wanted) % 2**32 == 0).all()
    assert (wanted % 2**32 != 0).any()


@EACH_TILE
@EACH_STRIDE
def test_transformed_numbers_fit(tile: int, stride: int) -> None:
    """255 in the image and in the filters, with the worst signs."""
    given = integer_transforms(tile, stride)
    for matrix in (given.image, given.filters):
        assert 255 * abs(matrix).sum(1, dtype=int).max() ** 2 < 2**15
    assert given.bits == LOST[tile, stride]


@EACH_TILE
@EACH_STRIDE
def test_filters_in_blocks_are_those_at_once(
    tile: int, stride: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    w = sample(1, (13, 7, 3, 3), "int8", -128, 127)
    change = IntegerFilters(tile, stride)
    whole = change.of(w)
    assert whole.shape == change.shape(w.shape)
    assert whole.dtype == change.dtype(w.dtype) == INT16
    monkeypatch.setattr("nanoloom.linalg.products.winograd.BLOCK", 200)
    assert (change.of(w) == whole).all()
    assert str(change) == f"winograd[{tile}, {stride}, int16]"


def compared(
    x: Array,
    w: Array,
    window: Window,
    around: int,
    tile: int,
    target: Target,
    groups: int = 1,
) -> tuple[Array, Array]:
    """The sums of a program, and of int64."""

    def make(b: Any, x: Any) -> Any:
        return integer_winograd(b, x, around, b.constant(w), window, tile, groups)

    got = run(make, x, target=target, order=backwards)
    wide = x.astype(np.int64) - around  # so that convolved pads with it
    filters = w.astype(np.int64)
    parts = zip(np.split(wide, groups, -1), np.split(filters, groups), strict=True)
    sums = np.concatenate([convolved(*part, window) for part in parts], -1)
    return got, sums + around * filters.sum((1, 2, 3))


CASES = [
    ("uint8", "int8", (1, 8, 8, 16), 16, (1, 1), (1, 1), 3),
    ("int8", "int8", (2, 13, 7, 9), 33, (1, 1), (1, 1), -128),
    ("uint8", "int16", (1, 3, 3, 5), 1, (0, 0), (0, 0), 255),
    ("uint8", "int8", (1, 5, 17, 1), 12, (0, 2), (2, 0), 0),
    ("int8", "int8", (3, 6, 5, 31), 8, (2, 1), (3, 1), 127),
]


@pytest.mark.drawn
@EACH_TILE
@EACH_STRIDE
@pytest.mark.parametrize("target", targets(), ids=str)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_numbers(tile: int, stride: int, target: Target, case: Any) -> None:
    kind, weight, shape, made, low, after, around = case
    window = window_of(shape[1:3], low, after, stride)
    x = sample(2, shape, kind, -128, 255)
    ends = (-128, 127) if weight == "int8" else (-255, 255)
    w = sample(3, (made, shape[3], 3, 3), weight, *ends)
    w[0] = ends[1]
    got, exact = compared(x, w, window, around, tile, target)
    check(got, exact.astype(np.int32), 0)


@EACH_TILE
@EACH_STRIDE
def test_groups(tile: int, stride: int) -> None:
    window = window_of((7, 9), stride=stride)
    x = sample(2, (1, 7, 9, 36), "uint8", -128, 255)
    w = sample(3, (15, 12, 3, 3), "int8", -128, 127)
    got, exact = compared(x, w, window, 5, tile, by_name("x86-64-v3"), groups=3)
    check(got, exact.astype(np.int32), 0)


@pytest.mark.parametrize("name", ["skylake-avx512", "x86-64-v2", "aarch64"])
def test_other_targets(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    window = Window((3, 3), (1, 1), (1, 1), (1, 1), (1, 1), (6, 5), (6, 5))
    x = sample(2, (1, 6, 5, 7), "uint8", -128, 255)
    w = sample(3, (19, 7, 3, 3), "int8", -128, 127)
    got, exact = compared(x, w, window, 7, 4, machine(name, monkeypatch))
    check(got, exact.astype(np.int32), 0)


def test_the_last_bit() -> None:
    """Sums below 2^25 are exact in tiles of 4 x 4, and others are not."""
    window = Window((3, 3), (1, 1), (1, 1), (0, 0), (0, 0), (6, 6), (4, 4))
    for channels in (115, 116):
        x = np.full((1, 6, 6, channels), 255, np.uint8)
        w = np.full((2, channels, 3, 3), 127, np.int8)
        w[1] = -127
        got, exact = compared(x, w, window, 0, 4, by_name("x86-64-v3"))
        assert (got == exact).all() == (abs(exact).max() < 2**25) == (channels == 115)
