"""Weights of 2 bytes as f32: where, and that every product stays what it was."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from nanoloom.ir import mlir
from nanoloom.kernels.retype.widening import ROWS, widen
from nanoloom.schedule.library.family import multiplies
from nanoloom.target import by_name
from tests.linalg.bounds import sample
from tests.vector.checks import check, contracted
from tests.vector.kernel_harness import build, cut, executable, targets

F32 = np.dtype(np.float32)


def product(equation: str, weight: np.ndarray | None) -> Any:
    """Builds a contraction; weight: a parameter, None for a second input."""

    def make(b: Any, x: Any, *w: Any) -> Any:
        right = b.constant(weight) if weight is not None else w[0]
        return b.einsum(equation, x, right, dtype=F32)

    return make


def text(equation: str, rows: int, kind: str, *, packed: bool = True) -> str:
    """The module of a product on a target without instructions for its type."""
    weight = sample(1, (20, 7), kind)
    inputs = [((rows, 20), kind), *([] if packed else [((20, 7), kind)])]
    with mlir.context():
        lowered = build(product(equation, weight if packed else None), *inputs)
        return str(widen(lowered, lambda kind: False).module)


@pytest.mark.parametrize("kind", ["bfloat16", "float16"])
def test_many_rows(kind: str) -> None:
    short = {"bfloat16": "bf16", "float16": "f16"}[kind]
    found = text("mk,kn->mn", ROWS, kind)
    operands = rf"ins\(%\d, %arg2 : tensor<{ROWS}x20xf32>, tensor<20x7xf32>\)"
    assert re.search(operands, found)
    assert found.count(f"arith.extf %in : {short} to f32") == 1  # the rows, once


@pytest.mark.parametrize("kind", ["bfloat16", "float16"])
def test_few_rows_and_two_activations_stay(kind: str) -> None:
    assert "tensor<20x7xf32>" not in text("mk,kn->mn", ROWS - 1, kind)
    assert "tensor<20x7xf32>" not in text("mk,kn->mn", 99, kind, packed=False)


def test_other_types_stay() -> None:
    assert "arith.ext" not in text("mk,kn->mn", 99, "float32")


@pytest.mark.parametrize(
    ("name", "bf16"),
    [
        ("x86-64-v3", False),
        ("icelake-server", False),
        ("sapphirerapids", True),
        ("znver4", True),
        ("sierraforest", True),
        ("apple-m1", False),
        ("neoverse-v1", True),
        ("rv64gcv", False),
    ],
)
def test_targets(name: str, bf16: bool) -> None:
    assert multiplies(by_name(name), "bf16") == bf16
    assert not multiplies(by_name(name), "f16")


@pytest.mark.drawn
@pytest.mark.parametrize("m, k, n", [(16, 8, 5), (33, 70, 100), (97, 130, 49)])
@pytest.mark.parametrize("kind", ["bfloat16", "float16"])
def test_numbers(kind: str, m: int, k: int, n: int) -> None:
    left, right = sample(m, (m, k), kind), sample(n, (k, n), kind)
    for target in targets():
        with mlir.context():
            lowered = build(product("mk,kn->mn", right), left)
            program = cut(widen(lowered, lambda kind: False))
        (got,) = executable(program, target)(left)
        exact, magnitude, count = contracted("mk,kn->mn", left, right)
        check(got, exact, count + 1, magnitude)  # products are exact, sums round
