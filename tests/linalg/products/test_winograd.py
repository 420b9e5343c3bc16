"""Winograd's convolutions against sums over taps, in any sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nanoloom.graph.winograd import places_along
from nanoloom.linalg.builder.window import Window
from nanoloom.linalg.products.winograd import TransformedFilters, transforms, winograd
from nanoloom.target import Target
from tests.linalg.bounds import sample
from tests.vector.checks import check
from tests.vector.kernel_harness import Array, backwards, run, targets

TILES = pytest.mark.parametrize("tile", [2, 3, 4])
STRIDES = pytest.mark.parametrize("stride", [1, 2])


@TILES
@STRIDES
def test_one_dimension_is_exact_on_small_integers(tile: int, stride: int) -> None:
    """The matrices are those of a convolution: no rounding in float64 but G's."""
    given = transforms(tile, stride)
    d, g = np.arange(3.0, stride * (tile - 1) + 6), np.array([5.0, -3, 2])
    exact = np.correlate(d, g, "valid")[::stride]
    got = given.result @ ((given.filters @ g) * (given.image @ d))
    assert np.abs(got - exact).max() < 1e-12 * np.abs(exact).max()
    assert np.abs(got - exact[::-1]).max() > 1
    assert len(given.image) == places_along(tile, stride)


@pytest.mark.parametrize(
    ("tile", "stride", "stated"), [(2, 1, 16), (4, 1, 861), (2, 2, 9), (4, 2, 206)]
)
def test_how_far_roundings_grow(tile: int, stride: int, stated: int) -> None:
    """What docs/convolutions.md calls a: the method's numbers for its result's."""
    given = transforms(tile, stride)
    sums = np.abs(given.image).sum(1)
    axis = np.abs(given.result) @ (np.abs(given.filters) * sums[:, None])
    assert stated - 1 < axis.max() ** 2 <= stated


def test_an_infinity_is_in_all_of_its_tile() -> None:
    x, w = sample(2, (1, 8, 8, 4), "float32"), sample(3, (5, 4, 3, 3), "float32")
    x[0, 1, 1, 2] = np.inf
    window = window_of((8, 8))
    got = run(lambda b, x: winograd(b, x, b.constant(w), window, 4, None), x)
    assert not np.isfinite(got[0, :4, :4]).any()
    assert np.isfinite(got[0, 4:, 4:]).all()


@TILES
@STRIDES
def test_filters_in_blocks_are_those_at_once(
    tile: int, stride: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    w = sample(1, (13, 7, 3, 3), "float32")
    change = TransformedFilters(tile, stride)
    whole = change.of(w)
    assert whole.shape == change.shape(w.shape) and whole.dtype == w.dtype
    monkeypatch.setattr("nanoloom.linalg.products.winograd.BLOCK", 200)
    assert (change.of(w) == whole).all()
    assert str(change) == f"winograd[{tile}, {stride}]"


@TILES
def test_filters_are_rounded_once(tile: int) -> None:
    """Half of a last place off, and what the sums of numbers of 53 bits add to it."""
    w = sample(4, (13, 7, 3, 3), "float32")
    matrix = transforms(tile).filters
    exact = np.einsum("ai,bj,fcij->abcf", matrix, matrix, w.astype(np.longdouble))
    off = np.abs(TransformedFilters(tile).of(w) - exact)
    sums = np.einsum("ai,bj,fcij->abcf", *map(np.abs, (matrix, matrix, w)))
    allowed = np.spacing(np.abs(exact).astype(np.float32)) * 0.5 + 2**-50 * sums
    assert (off <= allowed).all() and off.max() > 0


def convolved(x: Array, w: Array, window: Window) -> Array:
    """In the type of its arguments; x [n, h, w, c], w [f, c, 3, 3]."""
    margins = zip(window.low, window.high, strict=True)
    padded = np.pad(x, [(0, 0), *margins, (0, 0)])
    (high, wide), (step, _) = window.result, window.strides
    made = np.zeros((x.shape[0], high, wide, w.shape[0]), x.dtype)
    for i, j in np.ndindex(3, 3):
        seen = padded[:, i::step, j::step][:, :high, :wide]
        made += seen @ w[:, :, i, j].T
    return made


def magnitude(x: Array, w: Array, window: Window, tile: int) -> Array:
    """What roundings are relative to: the method on absolute values."""
    step = window.strides[0]
    given = transforms(tile, step)
    image, filters, result = map(abs, (given.image, given.filters, given.result))
    n, _, _, channels = x.shape
    high, wide = (-(-extent // tile) for extent in window.result)
    padded = np.zeros((n, *(step * tile * c + 3 for c in (high, wide)), channels))
    (top, left), (rows, columns) = window.low, x.shape[1:3]
    inside = padded[:, top : top + rows, left : left + columns]
    inside += abs(x)[:, : inside.shape[1], : inside.shape[2]]
    u = np.einsum("ai,bj,fcij->abcf", filters, filters, abs(w))
    made = np.zeros((n, high * tile, wide * tile, w.shape[0]))
    reach = image.shape[1]
    for y, z in np.ndindex(high, wide):
        first, left = step * tile * y, step * tile * z
        d = padded[:, first : first + reach, left : left + reach]
        v = np.einsum("ai,bj,nijc->nabc", image, image, d)
        m = np.einsum("nabc,abcf->nabf", v, u)
        here = (slice(y * tile, y * tile + tile), slice(z * tile, z * tile + tile))
        made[:, *here] = np.einsum("ia,jb,nabf->nijf", result, result, m)
    return made[:, : window.result[0], : window.result[1]]


def window_of(
    size: tuple[int, ...],
    low: tuple[int, ...] = (1, 1),
    high: tuple[int, ...] = (1, 1),
    stride: int = 1,
) -> Window:
    """Windows of 3x3 over an image."""
    read = [s + a + z - 3 for s, a, z in zip(size, low, high, strict=True)]
    result = tuple(n // stride + 1 for n in read)
    return Window((3, 3), (stride,) * 2, (1, 1), low, high, size, result)


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
