"""Sums by factors that are known while compiling: written out, zeros left out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nanoloom.linalg.builder.tensor import changed
from nanoloom.target import by_name
from nanoloom.weights.derivations import Coefficients
from tests.vector.kernel_harness import (
    Array,
    Make,
    executable,
    program_of,
    stage_text,
    targets,
)


def product(factors: Array, *, adds: bool = False) -> Make:
    """y[n, r, c] = sum over k of factors[r, k] x[n, k, c]; adds: and 1."""

    def make(b: Any, x: Any) -> Any:
        known = changed(b.constant(factors), Coefficients())
        y = b.einsum("rk,nkc->nrc", known, x)
        return b.elementwise(lambda s: s + 1, y) if adds else y

    return make


def drawn(seed: int) -> tuple[Array, Array]:
    """Factors, of which some are 0, 1 and -1, and what they multiply: small integers,
    whose sums are exact."""
    r = np.random.default_rng([23, seed])
    n, rows, k, c = (int(r.integers(1, most)) for most in (6, 9, 9, 80))
    factors = r.choice([0, 0, 1, -1, 2, -4, 5], (rows, k)).astype(np.float32)
    return factors, r.integers(-9, 10, (n, k, c)).astype(np.float32)


@pytest.mark.parametrize("seed", range(8))
def test_drawn_factors(seed: int) -> None:
    factors, x = drawn(seed)
    adds = seed % 2
    program = program_of(product(factors, adds=bool(adds)), x)
    exact = np.einsum("rk,nkc->nrc", factors, x) + adds
    for target in targets():
        (made,) = executable(program, target)(x)
        assert np.array_equal(made, exact)
        assert not factors.any() or not np.array_equal(made, 0 * exact)


MATRIX = np.array([[1, 0, -1, 2], [0, 1, 1, 0], [4, 0, 0, 1]], np.float32)


@pytest.mark.parametrize("name", ["x86-64-v3", "znver4", "aarch64", "rv64gcv"])
def test_only_terms_are_computed(name: str) -> None:
    """One multiply-add for each factor that is not 0; nothing reads them."""
    x = np.ones((3, 4, 32), np.float32)
    target = by_name(name)
    program = program_of(product(MATRIX), x, target=target)
    text = stage_text(program, "vector", target)
    count = text.count("vector.fma")
    assert count and count % np.count_nonzero(MATRIX) == 0
    assert "memref<3x4xf32" not in text.partition("{\n")[2].partition("{\n")[2]


def test_terms_that_are_not_there() -> None:
    """What would be multiplied by 0 is in no sum, be it infinite."""
    x = np.ones((2, 4, 16), np.float32)
    x[:, 1] = np.inf
    (made,) = executable(program_of(product(MATRIX), x), targets()[0])(x)
    assert np.isinf(made[:, 1]).all() and np.isfinite(made[:, [0, 2]]).all()
