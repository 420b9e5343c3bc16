"""Sums as 8-bit integers: what is packed saturates without instructions for it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nanoloom.linalg.builder.f32_requantization import MOST_WRONG, NEVER, to_f32_scale
from nanoloom.linalg.builder.requantization import Requantization
from nanoloom.target import by_name
from tests.linalg.bounds import sample
from tests.vector.assembly import count
from tests.vector.kernel_harness import program_of, run, stage_text

CASES = [("uint8", 0), ("uint8", 117), ("uint8", 255), ("int8", -128), ("int8", 5)]


def made(kind: str, start: int, relu: bool) -> Any:
    whole = Requantization(np.dtype(kind), start, relu, 2.0**20)

    def make(b: Any, x: Any) -> Any:
        factor = b.constant(np.array(0.37))
        return b.elementwise(whole.of, x, factor, dtype=np.dtype(kind))

    return make


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize(("kind", "start"), CASES)
def test_numbers(kind: str, start: int, relu: bool) -> None:
    x = sample(1, (7, 133), "int32", -2000, 2000)
    wanted = np.rint(x * 0.37)
    wanted = (np.maximum(wanted, 0) if relu else wanted) + start
    limits = np.iinfo(kind)
    got = run(made(kind, start, relu), x)
    assert (got == wanted.clip(limits.min, limits.max)).all()
    assert got.dtype == kind and len(np.unique(wanted)) > 100


@pytest.mark.parametrize(("kind", "start"), CASES)
def test_numbers_in_f32(kind: str, start: int) -> None:
    """Every sum of each column, with those that are wrong in some of them."""
    random = np.random.default_rng(3)
    factor, offset = random.uniform(6e-4, 8e-4, 256), random.uniform(-9e3, 9e3, 256)
    whole = Requantization(np.dtype(kind), start, False, 2.0**10)
    single = to_f32_scale(factor, offset, *whole.limits, 300_000)
    assert single is not None and len(single.wrong) == MOST_WRONG
    wrong = np.where(single.wrong == NEVER, 0, single.wrong)
    x = wrong[0] + sample(1, (64, 256), "int32", -60000, 60000)
    x[:MOST_WRONG] = wrong

    def make(b: Any, x: Any) -> Any:
        apart = (y for pair in zip(single.wrong, single.own, strict=True) for y in pair)
        near = single.factors, single.offsets, *apart
        given = [b.constant(y) for y in near]
        return b.elementwise(whole.in_f32, x, *given, dtype=np.dtype(kind))

    limits = np.iinfo(kind)
    wanted = np.rint((x + offset) * factor) + start
    assert (run(make, x.astype(np.int32)) == wanted.clip(limits.min, limits.max)).all()


@pytest.mark.parametrize(("kind", "start"), CASES)
def test_packing_has_the_limits(kind: str, start: int) -> None:
    program = program_of(made(kind, start, False), ((64, 128), "int32"))
    text = stage_text(program, "asm", by_name("x86-64-v3")).splitlines()
    assert count(text, "vpackuswb" if kind == "uint8" else "vpacksswb")
    assert not count(text, "vpminsd") and not count(text, "vpmaxsd")
