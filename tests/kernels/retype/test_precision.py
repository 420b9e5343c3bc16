"""`--precision bf16`: which sums change, and which stay in f32."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nanoloom.ir import mlir
from nanoloom.kernels.retype.precision import LEAST, to_bf16
from tests.vector.kernel_harness import build

F32 = np.dtype(np.float32)


def rounded(equation: str, *shapes: tuple[int, ...]) -> bool:
    """Whether the operands of the only contraction become bf16."""

    def make(b: Any, x: Any, y: Any) -> Any:
        return b.einsum(equation, x, y, dtype=F32)

    with mlir.context():
        lowered = build(make, *(np.zeros(shape, F32) for shape in shapes))
        text = str(to_bf16(lowered).module)
    found = [line for line in text.splitlines() if "arith.mulf" in line]
    assert len(found) == 1
    assert text.count("arith.truncf") == 2 * ("bf16" in text)
    return "bf16" in text


@pytest.mark.parametrize("depth", [LEAST, LEAST + 1, 31, 197])
def test_sums_of_any_length(depth: int) -> None:
    assert rounded("mk,kn->mn", (5, depth), (depth, 7))
    assert rounded("bmk,bkn->bmn", (2, 5, depth), (2, depth, 7))
    assert rounded("mk,nk->mn", (5, depth), (7, depth))
    assert rounded("mjk,jkn->mn", (5, 3, depth), (3, depth, 7))


@pytest.mark.parametrize("depth", [1, 3, LEAST - 1])
def test_short_sums_stay(depth: int) -> None:
    assert not rounded("mk,kn->mn", (50, depth), (depth, 70))
    assert not rounded("mjk,jkn->mn", (5, 49, depth), (49, depth, 70))


@pytest.mark.parametrize("depth", [LEAST, 31])
def test_columns_on_their_own_stay(depth: int) -> None:
    """No nanokernel takes them."""
    assert not rounded("mkc,kc->mc", (5, depth, 7), (depth, 7))
