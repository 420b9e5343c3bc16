"""Four sums side by side become one vector: numbers, and what is stored at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nanoloom.target import Target
from tests.linalg.bounds import sample, wide
from tests.vector.checks import check
from tests.vector.kernel_harness import backwards, run, targets

SHAPES = [(1, 4, 4), (1, 7, 5), (3, 13, 16), (8, 23, 3), (5, 66, 33), (2, 3, 9)]


def product(b: Any, q: Any, k: Any) -> Any:
    return b.einsum("mk,nk->mn", q, k)


@pytest.mark.drawn
@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("target", targets(), ids=str)
def test_numbers(target: Target, kind: str) -> None:
    """Rows and columns that fill no tile, too; -0.0 stays, NaN stays where it is."""
    for rows, columns, depth in SHAPES:
        q, k = sample(1, (rows, depth), kind), sample(2, (columns, depth), kind)
        got = run(product, q, k, target=target, order=backwards)
        exact, size = wide(q) @ wide(k).T, abs(wide(q)) @ abs(wide(k)).T
        check(got, exact, depth, size)
        with pytest.raises(AssertionError):
            check(got[:, ::-1], exact, depth, size)


@pytest.mark.parametrize("target", targets(), ids=str)
def test_each_lane_is_its_own(target: Target) -> None:
    k = sample(3, (9, 7), "float32")
    k[2], k[6] = np.nan, np.inf
    got = run(product, np.ones((1, 7), np.float32), k, target=target)
    assert np.flatnonzero(np.isnan(got[0])).tolist() == [2]
    assert np.flatnonzero(np.isinf(got[0])).tolist() == [6]


def columns(b: Any, q: Any, k: Any, p: Any) -> Any:
    """Two products whose results lie between each other: y[m, n, 0] and y[m, n, 1]."""
    products = b.einsum("mk,nk->mn", q, k), b.einsum("mk,nk->mn", q, p)
    parts = [b.reshape(each, (*each.shape, 1)) for each in products]
    return b.concat(parts, 2)


@pytest.mark.parametrize("target", targets(), ids=str)
@pytest.mark.parametrize("shape", [(1, 7, 2), (3, 13, 16), (2, 4, 9)], ids=str)
def test_results_that_lie_apart(target: Target, shape: tuple[int, int, int]) -> None:
    rows, count, depth = shape
    q = sample(4, (rows, depth), "float32")
    both = [sample(n, (count, depth), "float32") for n in (5, 6)]
    got = run(columns, q, *both, target=target, order=backwards)
    for number, k in enumerate(both):
        exact, size = wide(q) @ wide(k).T, abs(wide(q)) @ abs(wide(k)).T
        check(got[:, :, number], exact, depth, size)
        with pytest.raises(AssertionError):
            check(got[:, :, 1 - number], exact, depth, size)


def squares(b: Any, x: Any) -> tuple[Any, Any]:
    """Of each row, twice: as the last column beside the row, and alone."""
    squares = b.elementwise(lambda a: a * a, x)
    sums = b.reduce(lambda a, s: a + s, squares, [1], 0)
    return b.concat([x, sums], 1), sums


@pytest.mark.parametrize("shape", [(37, 3), (6, 16)], ids=str)
def test_sums_that_are_a_column_and_a_result(shape: tuple[int, int]) -> None:
    """The column is the sums' own memory: each is stored by itself."""
    x = sample(7, shape, "float32")
    for target in targets():
        column, sums = run(squares, x, target=target, order=backwards)
        exact = (wide(x) ** 2).sum(1, keepdims=True)
        check(sums, exact, shape[1], exact)
        np.testing.assert_array_equal(column, np.column_stack([x, sums]))
