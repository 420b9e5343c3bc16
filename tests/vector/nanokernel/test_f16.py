"""f16 products with f32 sums: rows widened once, the right operand as it is read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nanoloom.target import by_name
from tests.linalg.bounds import sample
from tests.vector.checks import check, contracted
from tests.vector.kernel_harness import (
    Array,
    backwards,
    program_of,
    run,
    stage_text,
    targets,
)
from tests.vector.nanokernel.reference import machine

F32 = np.dtype(np.float32)
SIZES = [(1, 6, 17), (5, 35, 100), (33, 130, 17)]
TARGETS = pytest.mark.parametrize("target", targets(), ids=str)


def product(right: Array, *, packed: bool) -> Any:
    if packed:
        return lambda b, x: b.einsum("mk,kn->mn", x, b.constant(right), dtype=F32)
    return lambda b, x, w: b.einsum("mk,kn->mn", x, w, dtype=F32)


def compare(left: Array, right: Array, target: Any, *, packed: bool) -> None:
    given = (left,) if packed else (left, right)
    made = product(right, packed=packed)
    got = run(made, *given, target=target, order=backwards)
    exact, magnitude, count = contracted("mk,kn->mn", left, right)
    check(got, exact, count + 1, magnitude)


@pytest.mark.drawn
@TARGETS
@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("m, k, n", SIZES)
def test_numbers(target: Any, m: int, k: int, n: int, packed: bool) -> None:
    left, right = sample(m, (m, k), "float16"), sample(n, (k, n), "float16")
    compare(left, right, target, packed=packed)


@TARGETS
@pytest.mark.parametrize("packed", [True, False])
def test_subnormal_numbers(target: Any, packed: bool) -> None:
    """They are normal in f32: nothing is flushed to zero."""
    tiny = np.float16(2.0**-24)
    left = (sample(1, (5, 35), "int32", -9, 9) * tiny).astype(np.float16)
    right = sample(2, (35, 19), "float16")
    assert (abs(left) < np.finfo(np.float16).tiny).all()
    compare(left, right, target, packed=packed)


def test_a_row_is_widened_once_a_tile() -> None:
    """In front of the sums' loop; in it the left operand is f32."""
    right = np.zeros((64, 96), np.float16)
    program = program_of(product(right, packed=True), ((32, 64), "float16"))
    text = stage_text(program, "vector", by_name("x86-64-v3"))
    before, loop = text.split("iter_args(", 1)
    assert "arith.extf" in before
    assert "vector<8xf16> to vector<8xf32>" in loop  # the right operand
    assert "f16 to f32" not in loop.replace("xf16> to", "")


@pytest.mark.drawn
@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("m, k, n", SIZES)
def test_dot_products(m: int, k: int, n: int, packed: bool, monkeypatch: Any) -> None:
    """Pairs by vdpphps: exact products, which only sums round."""
    target = machine("graniterapids+avx10.2", monkeypatch)
    left, right = sample(m, (m, k), "float16"), sample(n, (k, n), "float16")
    given = (left,) if packed else (left, right)
    program = program_of(product(right, packed=packed), *given)
    assert 'family = "bf16-dot"' in stage_text(program, "schedule", target)
    compare(left, right, target, packed=packed)
