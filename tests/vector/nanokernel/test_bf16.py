"""bf16 products with f32 sums: every family against float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.linalg.bounds import sample, wide
from tests.vector.checks import check, contracted
from tests.vector.kernel_harness import (
    Array,
    backwards,
    program_of,
    run,
    stage_text,
)
from tests.vector.nanokernel.reference import machine

F32 = np.dtype(np.float32)
SIZES = [(1, 6, 17), (5, 35, 100), (33, 130, 17), (33, 2, 100), (5, 3, 2)]
PACKED = [  # a target, and the family it gets for a weight
    ("znver5", "bf16-dot"),
    ("neoverse-v1", "bf16-dot"),
    ("sierraforest", "bf16-convert"),
    ("x86-64-v3", "bf16-halves"),
    ("skylake-avx512", "bf16-halves"),
    ("x86-64-v2", "bf16-halves"),
]
FLAT = [  # the same for two activations (those of test_flat_columns.py apart)
    ("znver5", "bf16-dot"),
    ("neoverse-v1", "bf16-dot"),
    ("apple-m1", "fma"),
]


def bf16(seed: int, *shape: int) -> Array:
    return sample(seed, shape, "bfloat16")


def product(equation: str, right: Array, *, packed: bool) -> Any:
    """Builds the contraction; a packed right operand is a parameter."""
    if packed:
        return lambda b, x: b.einsum(equation, x, b.constant(right), dtype=F32)
    return lambda b, x, w: b.einsum(equation, x, w, dtype=F32)


def compare(
    equation: str, left: Array, right: Array, target: Any, family: str, packed: bool
) -> None:
    make = product(equation, right, packed=packed)
    given = (left,) if packed else (left, right)
    script = stage_text(program_of(make, *given), "schedule", target)
    assert f'family = "{family}"' in script
    got = run(make, *given, target=target, order=backwards)
    exact, magnitude, count = contracted(equation, left, right)
    check(got, exact, count + 1, magnitude)  # products are exact, sums round


@pytest.mark.drawn
@pytest.mark.parametrize("m, k, n", SIZES)
@pytest.mark.parametrize("name, family", PACKED)
def test_weights(
    name: str, family: str, m: int, k: int, n: int, monkeypatch: Any
) -> None:
    target = machine(name, monkeypatch)
    compare("mk,kn->mn", bf16(m, m, k), bf16(n, k, n), target, family, True)


@pytest.mark.drawn
@pytest.mark.parametrize("m, k, n", SIZES)
@pytest.mark.parametrize("name, family", FLAT)
def test_two_activations(
    name: str, family: str, m: int, k: int, n: int, monkeypatch: Any
) -> None:
    target = machine(name, monkeypatch)
    compare("mk,kn->mn", bf16(m, m, k), bf16(n, k, n), target, family, False)


@pytest.mark.drawn
@pytest.mark.parametrize("name, family", PACKED)
@pytest.mark.parametrize(
    ("equation", "left", "right"),
    [
        ("mjk,jkn->mn", (7, 3, 5), (3, 5, 19)),
        ("bmk,bkn->bmn", (2, 7, 9), (2, 9, 33)),
        ("mk,nk->mn", (13, 7), (31, 7)),
        ("k,kn->n", (17,), (17, 33)),
    ],
)
def test_forms(
    equation: str,
    left: tuple[int, ...],
    right: tuple[int, ...],
    name: str,
    family: str,
    monkeypatch: Any,
) -> None:
    target = machine(name, monkeypatch)
    compare(equation, bf16(1, *left), bf16(2, *right), target, family, True)


@pytest.mark.parametrize("name", [name for name, _ in PACKED])
def test_rows_that_do_not_lie_along_the_sum(name: str, monkeypatch: Any) -> None:
    """A group of the left operand would be gathered: multiply-adds do without."""
    target = machine(name, monkeypatch)
    compare("km,kn->mn", bf16(3, 9, 7), bf16(4, 9, 33), target, "fma", True)


@pytest.mark.parametrize("name, family", PACKED)
def test_an_epilogue(name: str, family: str, monkeypatch: Any) -> None:
    """relu(x @ w + bias) + residual, at once and in f32."""
    x, w = bf16(5, 33, 35), bf16(6, 35, 100)
    bias, residual = sample(7, (100,), "float32"), sample(8, (33, 100), "float32")

    def make(b: Any, x: Any, r: Any) -> Any:
        made = product("mk,kn->mn", w, packed=True)(b, x)
        made = b.elementwise(lambda s, t: (s + t).maximum(0), made, b.constant(bias))
        return b.elementwise(lambda s, t: s + t, made, r)

    target = machine(name, monkeypatch)
    got = run(make, x, residual, target=target, order=backwards)
    exact = np.maximum(wide(x) @ wide(w) + bias, 0) + residual
    size = abs(wide(x)) @ abs(wide(w)) + abs(bias) + abs(residual)
    check(got, exact, 35 + 3, size)
    assert family in stage_text(program_of(make, x, residual), "schedule", target)


@pytest.mark.parametrize("name", [name for name, _ in PACKED])
def test_large_and_small_numbers_are_exact(name: str, monkeypatch: Any) -> None:
    """One product a sum: nothing but f32's own range limits it."""
    left = np.zeros((5, 8), "float32")
    left[np.arange(5), [0, 1, 2, 3, 7]] = [1.0, -(2.0**60), 2.0**-60, 3.0, 1.5]
    right = bf16(9, 8, 17)
    x = left.astype(right.dtype)
    target = machine(name, monkeypatch)
    got = run(product("mk,kn->mn", right, packed=True), x, target=target)
    check(got, wide(x) @ wide(right), 0)
