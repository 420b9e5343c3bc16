"""Tiles of an image are written between the next layer's padding, not copied there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nanoloom.ir.regrouped_axes import groups_of
from nanoloom.linalg.products.winograd import winograd
from nanoloom.linalg.reductions.pooling import pool
from nanoloom.target import Target
from tests.kernels.test_fused_tile_pools import arrays, largest, windows
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
# tile, images, height, width, channels, filters, window of a pool
EVEN = [
    (4, 1, 8, 12, 5, 33, 2),
    (4, 2, 12, 8, 3, 16, 2),
    (2, 1, 6, 10, 7, 17, 2),
]
COPIED = [
    (4, 1, 7, 8, 5, 16, 2),  # tiles over an edge
    (4, 1, 12, 4, 3, 16, 2),  # a single one in a row
]


def layer(case: tuple[int, ...], w: Array, *, adds: bool, pools: bool) -> Make:
    """Winograd's method, a ReLU and a border of zeros around what is made.

    adds: the image without its border is read too.  pools: what is made is pooled.
    """
    tile = case[0]
    same, pooled = windows(case)

    def make(b: Any, x: Any) -> Any:
        y = winograd(b, x, b.constant(w), same, tile, None)
        y = b.elementwise(lambda s: s.maximum(0), y)
        if pools:
            y = pool(b, y, pooled, -np.inf, lambda s, x: s.maximum(x))
        around = b.pad(y, [0, 1, 1, 0], [0, 1, 1, 0], 0)
        return [around, b.elementwise(lambda s: s + s, y)] if adds else around

    return make


def copies(case: tuple[int, ...], *, adds: bool = False, pools: bool = False) -> int:
    """Kernels that only move numbers; x is padded by what reads it."""
    x, w, _ = arrays(case)
    program = program_of(layer(case, w, adds=adds, pools=pools), x)
    return sum(name.startswith("elementwise") for name in program.kernels) - adds


@pytest.mark.parametrize("pools", [False, True])
@pytest.mark.parametrize("case", EVEN, ids=str)
def test_nothing_copies_tiles(case: tuple[int, ...], pools: bool) -> None:
    assert copies(case, pools=pools) == 0


def test_what_others_read_lies_there_too() -> None:
    assert copies(EVEN[0], adds=True) == 0


@pytest.mark.parametrize("case", COPIED, ids=str)
def test_other_tiles_are_copied(case: tuple[int, ...]) -> None:
    assert copies(case) == 1


@pytest.mark.drawn
@TARGETS
@pytest.mark.parametrize("adds", [False, True])
@pytest.mark.parametrize("pools", [False, True])
@pytest.mark.parametrize("case", [*EVEN, *COPIED], ids=str)
def test_numbers(
    case: tuple[int, ...], pools: bool, adds: bool, target: Target
) -> None:
    """Tasks in any order give the same bits; the border is 0."""
    x, w, _ = arrays(case)
    made = program_of(layer(case, w, adds=adds, pools=pools), x)
    program = executable(made, target)
    found, again = program(x, order=at_once), program(x, order=backwards)
    assert all(map(np.array_equal, found, again))
    same, _ = windows(case)
    one, other = x.astype(np.float64), w.astype(np.float64)
    exact = np.maximum(convolved(one, other, same), 0)
    size = magnitude(one, other, same, case[0])
    if pools:
        exact, size = largest(exact, case), largest(size, case)
    steps = x.shape[-1] + 4 * (case[0] + 3)
    check(found[0][:, 1:-1, 1:-1], exact, steps, size)
    wrong = np.roll(exact, 1, 2)
    assert exact.shape[2] == 1 or not passes(
        found[0][:, 1:-1, 1:-1], wrong, steps, size
    )
    assert not found[0][:, [0, -1]].any() and not found[0][:, :, [0, -1]].any()
    if adds:
        check(found[1], 2 * exact, steps, 2 * size)


def test_groups() -> None:
    """Which dimensions are one of the image's; its extents of 1 are in none."""
    assert groups_of((8, 5), (1, 8, 5)) == [[0], [1]]
    assert groups_of((2, 4, 3, 4, 5), (1, 8, 12, 5)) == [[0, 1], [2, 3], [4]]
    assert groups_of((1, 4, 3, 4, 5), (4, 12, 5)) == [[0, 1], [2, 3], [4]]
    assert groups_of((2, 4, 4, 5), (8, 4, 5)) == [[0, 1], [2], [3]]


@pytest.mark.parametrize("seed", range(8))
def test_parts_with_axes_joined(seed: int) -> None:
    """A sum, a product or points write a block of a larger tensor through a shape in
    which some of its axes are apart; nothing is copied."""
    r = np.random.default_rng([29, seed])
    shape = tuple(int(n) for n in r.integers(2, 7, 4))
    groups = [[[0], [1, 2], [3]], [[0, 1], [2, 3]], [[0], [1, 2, 3]], [[0, 1, 2], [3]]]
    joined = tuple(int(np.prod([shape[d] for d in g])) for g in groups[seed % 4])
    low, high = (r.integers(0, 4, len(joined)).tolist() for _ in range(2))
    x = r.integers(-4, 5, (*shape[:2], 5)).astype(np.float32)
    w = r.integers(-4, 5, (5, *shape[2:])).astype(np.float32)
    y = np.einsum("abk,kcd->abcd", x, w)
    kind = ("product", "sum", "points")[seed % 3]

    def make(b: Any, x: Any) -> Any:
        if kind == "product":
            made = b.einsum("abk,kcd->abcd", x, b.constant(w))
        elif kind == "sum":
            every = b.elementwise(lambda s: s * 2, x)
            made = b.reduce(lambda s, t: s + t, every, [4], 0, keepdims=False)
        else:
            made = b.elementwise(lambda s: s * 2, x)
        made = b.elementwise(lambda s: s.maximum(0), made)
        return b.pad(b.reshape(made, joined), low, [n + 1 for n in high], 3)

    given = {"product": x, "sum": np.stack([y, y + 1], 4), "points": y}[kind]
    exact = {"product": y, "sum": 4 * y + 2, "points": 2 * y}[kind].clip(0)
    sides = [(a, n + 1) for a, n in zip(low, high, strict=True)]
    right = np.pad(exact.reshape(joined), sides, constant_values=3)
    program = program_of(make, given)
    names = [call.kernel for call in program.calls]
    assert len(names) == 2 and "border" in names[0], names
    for target in targets():
        (result,) = executable(program, target)(given)
        assert (result == right).all() and (right != 3).any()
