"""Rows of a few vectors: several are combined across lanes at once; their numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nanoloom.linalg.reductions.arguments import positions
from nanoloom.nest.extent import Lanes
from nanoloom.schedule.choose import choose
from nanoloom.schedule.language import ReduceJointly, Tile, UnrollAndJam, Vectorize
from nanoloom.target import by_name
from tests.linalg.bounds import sample, wide
from tests.vector.checks import check, few
from tests.vector.kernel_harness import (
    backwards,
    program_of,
    run,
    stage_text,
    targets,
)

V4 = by_name("x86-64-v4")
TARGETS = pytest.mark.parametrize("target", targets(), ids=str)


def largest(b: Any, x: Any) -> Any:
    return b.reduce(lambda a, s: a.maximum(s), x, [1], -np.inf, keepdims=False)


def place(b: Any, x: Any) -> Any:
    return positions(b, x, 1, largest=True, last=False)


def exponents(b: Any, x: Any) -> Any:
    """Of a row each, the sum of what is left of its largest number."""
    top = b.reduce(lambda a, s: a.maximum(s), x, [1], -np.inf)
    moved = b.elementwise(lambda s, m: s - m, x, top)
    return b.reduce(lambda a, s: a + s, moved, [1], 0, keepdims=False)


def grown(b: Any, x: Any) -> Any:
    """The sum of a function of each number, as LogSoftmax has it."""

    def add(a: Any, s: Any) -> Any:
        return a + s

    return b.reduce(add, x, [1], 0, keepdims=False, prepare=lambda s: s.math("exp"))


def words_of(make: Any, shape: tuple[int, int]) -> tuple[object, ...]:
    (kernel,) = program_of(make, (shape, "float32")).kernels.values()
    return choose(kernel.nest, V4).directives


@pytest.mark.parametrize(("length", "lanes"), [(2, 4), (5, 8), (16, 16), (200, 16)])
def test_four_rows_are_combined_by_vectors_no_longer_than_one(
    length: int, lanes: int
) -> None:
    words = words_of(largest, (40, length))
    assert Vectorize("reduction", "d1", Lanes(lanes), 1) in words
    assert UnrollAndJam("reduction", "d0", 4) in words
    assert ReduceJointly("reduction", 4) in words


def test_sums_of_functions_are_combined_together() -> None:
    words = words_of(grown, (40, 5))
    assert Vectorize("reduction", "d1", Lanes(8), 1) in words
    assert ReduceJointly("reduction", 4) in words


@TARGETS
@pytest.mark.parametrize(("rows", "length"), [(19, 5), (6, 21)])
def test_numbers_of_functions(target: Any, rows: int, length: int) -> None:
    x = sample(3, (rows, length), "float32")
    got, right = run(grown, x, target=target, order=backwards), np.exp(wide(x)).sum(1)
    check(got, right, length + 5, right)


def test_long_rows_are_combined_one_by_one() -> None:
    words = words_of(largest, (40, 300))
    assert Vectorize("reduction", "d1", Lanes(16), 4) in words
    assert not [word for word in words if isinstance(word, ReduceJointly)]


def test_few_short_rows_are_chains_of_their_own() -> None:
    """One by one, in the order of those that are combined together."""
    words = words_of(largest, (3, 20))
    assert Vectorize("reduction", "d1", Lanes(16), 1) in words
    assert not [word for word in words if isinstance(word, ReduceJointly)]


def test_all_stages_compute_a_tile_of_rows() -> None:
    words = words_of(exponents, (64, 10))
    (tile,) = [word for word in words if isinstance(word, Tile)]
    assert tile.sizes == (16, 0)
    assert len([word for word in words if isinstance(word, ReduceJointly)]) == 2
    (tile,) = [x for x in words_of(exponents, (64, 300)) if isinstance(x, Tile)]
    assert tile.sizes == (1, 0)


@TARGETS
@few
@given(rows=st.integers(4, 70), length=st.integers(1, 40), seed=st.integers(0, 99))
def test_numbers(target: Any, rows: int, length: int, seed: int) -> None:
    """The largest and its place exactly, also of NaN and of zeros; sums of rows."""
    x = sample(seed, (rows, length), "float32")
    got = run(exponents, x, target=target, order=backwards)
    exact, most = wide(x) - wide(x).max(1, keepdims=True), abs(wide(x)).max(1)
    check(got, exact.sum(1), length + 1, 2 * length * most)
    x[seed % rows, -1] = np.nan
    x[(seed + 1) % rows] = np.float32(-0.0)
    x[(seed + 1) % rows, length // 2] = 0
    np.testing.assert_array_equal(run(largest, x, target=target), x.max(1))
    found = run(place, x, target=target, order=backwards)
    np.testing.assert_array_equal(found, x.argmax(1))
    assert (found != x.argmax(1) + 1).all()


def test_x86_takes_the_largest_of_lanes_by_its_own_instruction() -> None:
    text = stage_text(program_of(largest, ((3, 16), "float32")), "llvm", V4)
    assert "avx512.mask.range.ps.256" in text
    assert "vector.reduce" not in text


@TARGETS
def test_a_row_is_the_same_number_wherever_it_stands(target: Any) -> None:
    """Also of few rows, and of those that are left of rows combined together."""
    row = sample(9, (1, 29), "float32")

    def total(b: Any, x: Any) -> Any:
        return b.reduce(lambda a, s: a + s, x, [1], 0, keepdims=False)

    got = [run(total, row.repeat(n, axis=0), target=target) for n in (1, 3, 23)]
    assert len({value.tobytes() for values in got for value in values}) == 1
