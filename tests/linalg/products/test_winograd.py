"""Winograd's convolutions against sums over taps, in any sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nanoloom.graph.winograd_transforms import Filtering, transforms
from nanoloom.linalg.builder.window import Window
from nanoloom.linalg.products.winograd import winograd
from nanoloom.linalg.products.winograd_filters import TransformedFilters
from nanoloom.target import Target
from tests.linalg.bounds import sample
from tests.vector.checks import check
from tests.vector.kernel_harness import Array, backwards, run, targets

TILES = pytest.mark.parametrize("tile", [2, 3, 4])
STRIDES = pytest.mark.parametrize("stride", [1, 2])
KERNELS = ((3, 3), (1, 7), (5, 1), (4, 2), (3,), (5, 5))


def axes_of(kernel: tuple[int, ...], stride: int, tile: int) -> tuple[Filtering, ...]:
    """Tiles along the axes of several taps."""
    return tuple(
        Filtering(tile, taps, stride) if taps > 1 else Filtering(1, 1)
        for taps in kernel
    )


EVERY = pytest.mark.parametrize(
    ("kernel", "tile", "stride"),
    [
        (kernel, tile, stride)
        for kernel in KERNELS
        for tile in (2, 3, 4)
        for stride in (1, 2)
        if all(axis.is_known for axis in axes_of(kernel, stride, tile))
    ],
    ids=str,
)


def test_an_infinity_is_in_all_of_its_tile() -> None:
    x, w = sample(2, (1, 8, 8, 4), "float32"), sample(3, (5, 4, 3, 3), "float32")
    x[0, 1, 1, 2] = np.inf
    window = window_of((8, 8))
    got = run(lambda b, x: winograd(b, x, b.constant(w), window, 4, None), x)
    assert not np.isfinite(got[0, :4, :4]).any()
    assert np.isfinite(got[0, 4:, 4:]).all()


@EVERY
def test_filters_in_blocks_are_those_at_once(
    kernel: tuple[int, ...], tile: int, stride: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    w, axes = sample(1, (13, 7, *kernel), "float32"), axes_of(kernel, stride, tile)
    change = TransformedFilters(axes)
    whole = change.of(w)
    assert whole.shape == change.shape(w.shape) and whole.dtype == w.dtype
    monkeypatch.setattr("nanoloom.linalg.products.winograd_filters.BLOCK", 200)
    assert (change.of(w) == whole).all()
    assert str(change) == f"winograd[{', '.join(map(str, axes))}]"


@TILES
def test_filters_are_rounded_once(tile: int) -> None:
    """Half of a last place off, and what the sums of numbers of 53 bits add to it."""
    w, axes = sample(4, (13, 7, 3, 3), "float32"), axes_of((3, 3), 1, tile)
    matrix = transforms(axes[0]).filters
    exact = np.einsum("ai,bj,fcij->abcf", matrix, matrix, w.astype(np.longdouble))
    off = np.abs(TransformedFilters(axes).of(w) - exact)
    sums = np.einsum("ai,bj,fcij->abcf", *map(np.abs, (matrix, matrix, w)))
    allowed = np.spacing(np.abs(exact).astype(np.float32)) * 0.5 + 2**-50 * sums
    assert (off <= allowed).all() and off.max() > 0


def convolved(x: Array, w: Array, window: Window) -> Array:
    """In the type of its arguments; x [n, sides..., c], w [f, c, taps...]."""
    margins = zip(window.low, window.high, strict=True)
    padded = np.pad(x, [(0, 0), *margins, (0, 0)])
    made = np.zeros((x.shape[0], *window.result, w.shape[0]), x.dtype)
    for tap in np.ndindex(*window.kernel):
        steps = zip(tap, window.strides, window.result, strict=True)
        seen = padded[:, *(slice(i, i + s * (n - 1) + 1, s) for i, s, n in steps)]
        made += seen @ w[:, :, *tap].T
    return made


def magnitude(x: Array, w: Array, window: Window, tile: int) -> Array:
    """What roundings are relative to: the method on absolute values."""
    axes = tuple(
        Filtering(tile if taps > 1 else 1, taps, stride)
        for taps, stride in zip(window.kernel, window.strides, strict=True)
    )
    tables = [transforms(axis) for axis in axes]
    counts = [-(-n // axis.tile) for n, axis in zip(window.result, axes, strict=True)]
    high = [
        max(0, axis.step * (count - 1) + axis.reach - size - low)
        for axis, count, size, low in zip(
            axes, counts, window.size, window.low, strict=True
        )
    ]
    margins = zip(window.low, high, strict=True)
    padded = np.pad(abs(x), [(0, 0), *margins, (0, 0)])
    u = abs(w)
    for k, given in enumerate(tables):
        u = np.moveaxis(np.tensordot(abs(given.filters), u, (1, 2 + k)), 0, 2 + k)
    sides = (count * axis.tile for count, axis in zip(counts, axes, strict=True))
    made = np.zeros((x.shape[0], *sides, w.shape[0]))
    for at in np.ndindex(*counts):
        parts = [(a.step * i, a.reach) for i, a in zip(at, axes, strict=True)]
        v = padded[:, *(slice(i, i + reach) for i, reach in parts)]
        for k, given in enumerate(tables):
            v = np.moveaxis(np.tensordot(abs(given.image), v, (1, 1 + k)), 0, 1 + k)
        m = np.einsum("n...c,fc...->n...f", v, u)
        for k, given in enumerate(tables):
            m = np.moveaxis(np.tensordot(abs(given.result), m, (1, 1 + k)), 0, 1 + k)
        here = (
            slice(i * a.tile, (i + 1) * a.tile) for i, a in zip(at, axes, strict=True)
        )
        made[:, *here] = m
    return made[:, *(slice(n) for n in window.result)]


def window_of(
    size: tuple[int, ...],
    low: tuple[int, ...] = (1, 1),
    high: tuple[int, ...] = (1, 1),
    stride: int = 1,
    kernel: tuple[int, ...] = (3, 3),
) -> Window:
    """Windows over an image; the stride is along axes of several taps."""
    low, high = low[: len(size)], high[: len(size)]
    strides = tuple(stride if taps > 1 else 1 for taps in kernel)
    read = zip(size, low, high, kernel, strides, strict=True)
    result = tuple((n + a + z - taps) // s + 1 for n, a, z, taps, s in read)
    return Window(kernel, strides, (1,) * len(size), low, high, size, result)


CASES = [
    (1, 8, 8, 16, 16, (1, 1), (1, 1)),
    (2, 13, 7, 9, 33, (1, 1), (1, 1)),
    (1, 3, 3, 5, 1, (0, 0), (0, 0)),
    (1, 5, 17, 1, 12, (0, 2), (2, 0)),
    (3, 6, 5, 31, 8, (2, 1), (3, 1)),
]


@pytest.mark.parametrize("tile", [2, 4])
@pytest.mark.parametrize("biased", [False, True])
def test_halves_are_rounded_at_the_end_alone(tile: int, biased: bool) -> None:
    """All between is of 32 bits: errors are those of float32, and one rounding."""
    size, channels, made = (9, 7), 21, 13
    window = window_of(size)
    x = sample(2, (2, *size, channels), "float16")
    w = sample(3, (made, channels, 3, 3), "float16")
    bias = sample(4, (made,), "float16")

    def make(b: Any, x: Any) -> Any:
        added = b.constant(bias) if biased else None
        return winograd(b, x, b.constant(w), window, tile, added)

    got = run(make, x)
    assert got.dtype == np.float16
    wide, filters = x.astype(np.float64), w.astype(np.float64)
    exact = convolved(wide, filters, window) + (bias.astype(np.float64) * biased)
    sums = 2**-24 * (channels + 4 * tile + 12) * magnitude(wide, filters, window, tile)
    allowed = sums + 2**-11 * (abs(exact) + sums) + 2**-24 * (1 + abs(bias).max())
    assert (abs(got - exact) <= allowed).all()
    assert not (abs(exact) <= allowed).all()


@pytest.mark.drawn
@TILES
@STRIDES
@pytest.mark.parametrize("target", targets(), ids=str)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_numbers(tile: int, stride: int, target: Target, case: Any) -> None:
    """Every second one with a bias."""
    n, high, wide, channels, made, low, after = case
    biased = CASES.index(case) % 2 == 0
    window = window_of((high, wide), low, after, stride)
    x = sample(2, (n, high, wide, channels), "float32")
    w = sample(3, (made, channels, 3, 3), "float32")
    bias = sample(4, (made,), "float32")

    def make(b: Any, x: Any) -> Any:
        added = b.constant(bias) if biased else None
        return b.elementwise(
            lambda s: s.maximum(0),
            winograd(b, x, b.constant(w), window, tile, added),
        )

    got = run(make, x, target=target, order=backwards)
    one, other = x.astype(np.float64), w.astype(np.float64)
    exact = convolved(one, other, window) + (bias if biased else 0)
    size_of = magnitude(one, other, window, tile) + abs(bias)
    check(got, np.maximum(exact, 0), channels + 4 * (tile + 3), size_of)


@TILES
@STRIDES
@pytest.mark.parametrize(("groups", "depth", "made"), [(3, 5, 4), (2, 24, 17)])
def test_groups(tile: int, stride: int, groups: int, depth: int, made: int) -> None:
    """Each has results of its own channels alone, in order."""
    size, features = (9, 7), groups * made
    window = window_of(size, stride=stride)
    x = sample(2, (2, *size, groups * depth), "float32")
    w, bias = (
        sample(3, (features, depth, 3, 3), "float32"),
        sample(4, (features,), "float32"),
    )

    def make(b: Any, x: Any) -> Any:
        added = b.constant(bias)
        return winograd(b, x, b.constant(w), window, tile, added, groups)

    got = run(make, x, order=backwards)
    images = np.split(x.astype(np.float64), groups, axis=-1)
    filters = np.split(w.astype(np.float64), groups)
    pairs = list(zip(images, filters, strict=True))
    exact = np.concatenate([convolved(*pair, window) for pair in pairs], -1) + bias
    sizes = np.concatenate([magnitude(*pair, window, tile) for pair in pairs], -1)
    check(got, exact, depth + 4 * (tile + 3), sizes + abs(bias))


@EVERY
def test_taps(kernel: tuple[int, ...], tile: int, stride: int) -> None:
    """Of other numbers, along one axis or both; with groups where they are two."""
    groups, depth, made, size = len(kernel), 7, 5, (13, 17)[-len(kernel) :]
    window = window_of(size, (2, 1), (1, 3), stride, kernel)
    x = sample(2, (2, *size, groups * depth), "float32")
    w = sample(3, (groups * made, depth, *kernel), "float32")

    def make(b: Any, x: Any) -> Any:
        return winograd(b, x, b.constant(w), window, tile, None, groups)

    got = run(make, x, order=backwards)
    images = np.split(x.astype(np.float64), groups, axis=-1)
    pairs = list(zip(images, np.split(w.astype(np.float64), groups), strict=True))
    exact = np.concatenate([convolved(*pair, window) for pair in pairs], -1)
    sizes = np.concatenate([magnitude(*pair, window, tile) for pair in pairs], -1)
    # docs/convolutions.md: c + 4 p + 4, p the products along an axis, m + taps - 1.
    check(got, exact, depth + 4 * (tile + max(kernel)), sizes)
