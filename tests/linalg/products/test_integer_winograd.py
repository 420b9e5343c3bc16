"""Winograd's method on integers: every sum exact, up to the last bit that there is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nanoloom.graph.winograd import STRIDES, TILES
from nanoloom.graph.winograd_transforms import INT16
from nanoloom.linalg.builder.window import Window
from nanoloom.linalg.products.integer_winograd import integer_winograd
from nanoloom.linalg.products.winograd_filters import IntegerFilters
from nanoloom.target import Target, by_name
from tests.linalg.bounds import sample
from tests.linalg.products.test_winograd import axes_of, convolved, window_of
from tests.vector.checks import check
from tests.vector.kernel_harness import Array, backwards, run, targets
from tests.vector.nanokernel.reference import machine

EACH_TILE = pytest.mark.parametrize("tile", TILES)
EACH_STRIDE = pytest.mark.parametrize("stride", STRIDES)


@EACH_TILE
@EACH_STRIDE
def test_filters_in_blocks_are_those_at_once(
    tile: int, stride: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    w = sample(1, (13, 7, 3, 3), "int8", -128, 127)
    axes = axes_of((3, 3), stride, tile)
    change = IntegerFilters(axes)
    whole = change.of(w)
    assert whole.shape == change.shape(w.shape)
    assert whole.dtype == change.dtype(w.dtype) == INT16
    monkeypatch.setattr("nanoloom.linalg.products.winograd_filters.BLOCK", 200)
    assert (change.of(w) == whole).all()
    assert str(change) == f"winograd[{axes[0]}, {axes[1]}, int16]"


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
    return got, sums + around * filters.sum(tuple(range(1, filters.ndim)))


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


@EACH_STRIDE
@pytest.mark.parametrize("kernel", [(1, 4), (3,), (5, 1)], ids=str)
def test_taps(stride: int, kernel: tuple[int, ...]) -> None:
    """Of other numbers, along one axis."""
    size = (7, 9)[-len(kernel) :]
    window = window_of(size, (1, 2), (2, 1), stride, kernel)
    x = sample(2, (1, *size, 12), "uint8", -128, 255)
    w = sample(3, (15, 12, *kernel), "int8", -128, 127)
    got, exact = compared(x, w, window, 5, 2, by_name("x86-64-v3"))
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
