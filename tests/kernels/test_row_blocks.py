"""Chains of calls go round for blocks of rows, where a cache holds what is between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nanoloom.ir import mlir
from nanoloom.ir.mlir import ir
from nanoloom.kernels.leading_rows import LeadingRows, NoRows
from nanoloom.kernels.program import Program
from nanoloom.kernels.row_blocks import in_row_blocks
from nanoloom.linalg.builder.window import Window
from nanoloom.linalg.products.winograd import winograd
from nanoloom.nest.contraction import roles
from nanoloom.nest.granularity import BLOCK_ROWS
from nanoloom.target.facts import Cache
from nanoloom.target.host import host
from tests.linalg.products.test_winograd import convolved
from tests.vector.kernel_harness import Array, Make, executable, program_of

KIB = 1 << 10
PART = "x16x16x16_"  # of a block of their rows
PRODUCT = "x4x4x16x16_"  # in the name of a kernel: of 16 places, of 16 channels
SIDE, CHANNELS = 32, 16
WINDOW = Window((3, 3), (1, 1), (1, 1), (1, 1), (1, 1), (SIDE, SIDE), (SIDE, SIDE))


def small(seed: int, *shape: int) -> Array:
    """Few integers, of which all sums are exact."""
    return np.random.default_rng(seed).integers(-2, 3, shape).astype(np.float32)


def blocked(program: Program, held: int) -> Program:
    """In blocks for a cache that holds so many bytes beside what passes."""
    with mlir.context():
        return in_row_blocks(program, Cache(KIB, 2 * held))


def layers(w: Array, *, adds: bool) -> Make:
    """Two layers by Winograd's method; the second one's image lies in a border."""

    def make(b: Any, x: Any) -> Any:
        first = winograd(b, x, b.constant(w), WINDOW, 2, None)
        first = b.elementwise(lambda s: s.maximum(0), first)
        made = winograd(b, first, b.constant(w), WINDOW, 2, None)
        if adds:
            made = b.elementwise(lambda s, t: s + t, made, first)
        return b.elementwise(lambda s: s.maximum(0), made)

    return make


@pytest.mark.parametrize("adds", [False, True])
def test_winograd(adds: bool) -> None:
    """The same bits as by whole images, and right."""
    x = small(0, 1, SIDE, SIDE, CHANNELS)
    w = 4 * small(1, CHANNELS, CHANNELS, 3, 3)
    whole = program_of(layers(w, adds=adds), x)
    made = blocked(whole, 600 * KIB)
    parts = len(made.calls) - len(whole.calls)
    assert parts > 0 and sum(made.buffers) < sum(whole.buffers)
    first = np.maximum(convolved(x, w, WINDOW), 0)
    exact = np.maximum(convolved(first, w, WINDOW) + (first if adds else 0), 0)
    (result,), (same,) = executable(made, host())(x), executable(whole, host())(x)
    assert np.array_equal(result, same) and np.array_equal(result, exact)
    assert exact.any()


def test_a_cache_that_holds_all() -> None:
    x = small(0, 1, SIDE, SIDE, CHANNELS)
    whole = program_of(layers(small(1, CHANNELS, CHANNELS, 3, 3), adds=True), x)
    assert blocked(whole, 4096 * KIB) is whole


def test_products_of_few_rows_stay_whole() -> None:
    """Blocks of which a cache would hold what is between have too few rows."""
    x = small(0, 1, SIDE, SIDE, CHANNELS)
    whole = program_of(layers(small(1, CHANNELS, CHANNELS, 3, 3), adds=True), x)
    made = blocked(whole, 100 * KIB)
    for program in (whole, made):
        found = [call for call in program.calls if PRODUCT in call.kernel]
        assert len(found) == 2


def sums(seed: int) -> tuple[Make, Array, Array]:
    """Reductions behind each other, of rows that each other's are made of; what they
    are made of, and what that gives."""
    r = np.random.default_rng([17, seed])
    rows, count = 16 * int(r.integers(1, 4)), int(r.integers(2, 5))
    x = small(seed, rows, 3, 64)
    factors = [small(100 * seed + n, 3, 3) for n in range(count)]
    exact = x.astype(np.float64)
    for w in factors:
        exact = np.einsum("nkc,ka->nac", exact, w)

    def make(b: Any, x: Any) -> Any:
        for w in factors:
            x = b.einsum("ka,nkc->nac", b.constant(w), x)
        return x

    return make, x, exact


@pytest.mark.parametrize("seed", range(6))
def test_drawn_chains(seed: int) -> None:
    make, x, exact = sums(seed)
    whole = program_of(make, x)
    made = blocked(whole, x.nbytes // 2)
    for program in (whole, made):
        (result,) = executable(program, host())(x)
        assert np.array_equal(result, exact) and exact.any()
    if len(whole.calls) > 1:
        parts = len(made.calls) // len(whole.calls)
        assert parts > 1 and len(made.calls) == parts * len(whole.calls)
        assert sum(made.buffers) * parts == sum(whole.buffers)


def test_what_others_read_stays_whole() -> None:
    """A sum in the middle that is a result, too, and what reads all rows."""
    make, x, _ = sums(1)

    def both(b: Any, x: Any) -> Any:
        y = make(b, x)
        return [y, b.einsum("nac,mac->nm", y, y)]

    whole = program_of(both, x)
    made = blocked(whole, x.nbytes // 2)
    one, other = executable(whole, host())(x), executable(made, host())(x)
    assert all(map(np.array_equal, one, other))
    assert made.calls[-1] == whole.calls[-1]


def rows_of(program: Program, number: int = 0) -> LeadingRows:
    kernel = program.kernels[program.calls[number].kernel]
    return LeadingRows.of(ir.Module.parse(kernel.text))


REFUSED: dict[str, Callable[[Any, Any], Any]] = {
    "sums of all rows": lambda b, x: b.reduce(lambda s, t: s + t, x, [0, 1], 0),
    "borders": layers(small(1, CHANNELS, CHANNELS, 3, 3), adds=False),
    "all rows for each": lambda b, x: b.einsum("nhwc,nkwc->nhk", x, x),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_kernels_without_rows(kind: str) -> None:
    program = program_of(REFUSED[kind], small(2, 1, SIDE, SIDE, CHANNELS))
    with mlir.context(), pytest.raises(NoRows):
        rows_of(program)


def test_rows_of_windows() -> None:
    """What a row of tiles reads begins two rows of pixels behind the one before."""
    x = small(4, 1, SIDE, SIDE, CHANNELS)
    layer = layers(small(1, CHANNELS, CHANNELS, 3, 3), adds=False)
    with mlir.context():
        rows = rows_of(program_of(layer, x), 6)
    line = (SIDE + 2) * CHANNELS * 4
    assert rows.bytes == [0, 2 * line, 4 * line]
    assert [moved.plain for moved in rows.arguments] == [False, False, True]


def test_products_of_enough_rows() -> None:
    """A block's product has rows for each panel of its weights."""
    x = small(0, 1, SIDE, SIDE, CHANNELS)
    whole = program_of(layers(small(1, CHANNELS, CHANNELS, 3, 3), adds=False), x)
    made = blocked(whole, 600 * KIB)
    products = [k.nest.products[0] for n, k in made.kernels.items() if PART in n]
    assert products
    for shape in map(roles, products):
        assert shape is not None
        assert np.prod([shape.extents[d] for d in shape.rows]) >= BLOCK_ROWS
