"""f32 to bf16 without an instruction: every case of rounding, and whole vectors."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from nanoloom.target import by_name
from tests.vector.assembly import count
from tests.vector.kernel_harness import program_of, run, stage_text, targets

WITHOUT = pytest.mark.parametrize(
    "target", [x for x in targets() if not x.rounds_bf16], ids=str
)
SPECIAL = (0, 0x8000_0000, 0x7F80_0000, 0xFF80_0000, 0x7F7F_FFFF, 1, 0x8000, 0x18000)
NANS = (0x7F80_0001, 0xFF80_0001, 0x7FC0_0000, 0x7FFF_FFFF)


def rounded(b: Any, x: Any) -> Any:
    return b.cast(x, np.dtype(ml_dtypes.bfloat16))


def floats(seed: int, size: int) -> np.ndarray:
    """Any bits at all, ties and special numbers among them."""
    bits = np.random.default_rng(seed).integers(0, 1 << 32, size, np.uint32)
    bits[: len(SPECIAL)] = SPECIAL
    bits[100:400] &= 0xFFFF_8000  # half of them ties
    return bits.view(np.float32)


@WITHOUT
@pytest.mark.parametrize("size", [4099, 1])
def test_all_bits_but_those_of_a_nan(target: Any, size: int) -> None:
    x = floats(3, 4099)[:size]
    number = ~np.isnan(x)
    exact = np.where(number, x, 0).astype(ml_dtypes.bfloat16)
    got = run(rounded, x, target=target)
    same = got.view(np.uint16) == exact.view(np.uint16)
    assert number.any() and same[number].all()
    assert np.isnan(got[~number].astype(np.float32)).all()


@WITHOUT
def test_a_nan_stays_one(target: Any) -> None:
    """Also one whose bits are all in the lower half."""
    x = np.array(NANS * 5, np.uint32).view(np.float32)
    assert np.isnan(run(rounded, x, target=target).astype(np.float32)).all()


@pytest.mark.parametrize(
    ("name", "word"), [("x86-64-v3", "vpackusdw"), ("icelake-server", "vpmovdw")]
)
def test_vectors_are_not_taken_apart(name: str, word: str) -> None:
    program = program_of(rounded, ((64, 256), "float32"))
    lines = stage_text(program, "asm", by_name(name)).splitlines()
    assert count(lines, word)
    assert not count(lines, "call") and not count(lines, "vpextr")
