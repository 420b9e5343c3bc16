"""What fell out of a product's kernel begins the one that reads it."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.fusion.test_group import product, roots, summed
from tests.linalg.bounds import sample
from tests.vector.kernel_harness import run

X = sample(2, (5, 17), "float32")
EPS = np.finfo(np.float32).eps


def normalized(b: Any, x: Any, *, turned: bool = False) -> tuple[Any, Any]:
    """h = x w, and h / (sum(h h) + 1), the sum along rows, or along columns."""
    h = product(b, x)
    squares = b.elementwise(lambda s: s * s, h)
    total = summed(b, squares, 0 if turned else -1)
    total = b.reshape(total, (1, 19) if turned else (5, 1))
    return h, b.elementwise(lambda s, t: s / (t + 1), h, total)


def test_squares_of_a_sum_that_is_read_elsewhere_are_no_kernel() -> None:
    assert roots(normalized) == ["contraction", "reduction"]


def test_its_numbers() -> None:
    h, y = run(normalized, X)
    exact = h / ((h.astype(np.float64) ** 2).sum(-1, keepdims=True) + 1)
    assert np.allclose(y, exact, rtol=(19 + 4) * EPS)
    assert not np.allclose(np.roll(y, 1, 0), exact, rtol=(19 + 4) * EPS)


def test_sums_along_columns_stay_apart() -> None:
    """They go over no rows that a square could be made for."""

    def make(b: Any, x: Any) -> Any:
        return normalized(b, x, turned=True)

    assert roots(make)[:2] == ["contraction", "elementwise"]
