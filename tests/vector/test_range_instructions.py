"""Maxima and minima that keep NaN, in three instructions of AVX-512."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from nanoloom.target import by_name
from tests.vector.kernel_harness import program_of, run, stage_text

NUMBERS = [0.0, -0.0, 1.5, -1.5, 3e38, -3e38, 1e-45, np.inf, -np.inf, np.nan]
PAIRS = list(itertools.product(NUMBERS, NUMBERS))


def either(word: str) -> Any:
    return lambda b, x, y: b.elementwise(lambda s, t: getattr(s, word)(t), x, y)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("word", ["maximum", "minimum"])
def test_all_kinds_of_numbers(word: str, dtype: str) -> None:
    """NaN where one is; of two zeros the positive is larger."""
    x, y = (np.array(row, dtype) for row in zip(*PAIRS, strict=True))
    got = run(either(word), x, y)
    wanted = getattr(np, word)(x, y)
    assert np.array_equal(got, wanted, equal_nan=True)
    signs = np.signbit(x) & np.signbit(y)
    if word == "minimum":
        signs = np.signbit(x) | np.signbit(y)
    zeros = (x == 0) & (y == 0)
    assert zeros.sum() == 4
    assert np.array_equal(np.signbit(got)[zeros], signs[zeros])


@pytest.mark.parametrize(
    ("name", "there"), [("x86-64-v4", True), ("x86-64-v3", False), ("aarch64", False)]
)
def test_the_instruction(name: str, there: bool) -> None:
    """With a comparison each; where there is none, LLVM's own way."""
    program = program_of(either("maximum"), ((64,), "float32"), ((64,), "float32"))
    text = stage_text(program, "asm", by_name(name))
    ranges = text.count("vrangeps")
    assert (ranges > 0) is there
    assert not there or text.count("vcmpunordps") == ranges


def test_a_constant_is_left_to_llvm() -> None:
    program = program_of(
        lambda b, x: b.elementwise(lambda s: s.maximum(1.5), x), ((64,), "float32")
    )
    text = stage_text(program, "asm", by_name("x86-64-v4"))
    assert "vmaxps" in text and "vrangeps" not in text
