"""f16 to f32 without an instruction: every number there is, and whole vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nanoloom.target import TARGETS, by_name
from nanoloom.target.host import host
from tests.vector.assembly import count
from tests.vector.kernel_harness import program_of, run, stage_text, targets

OLD = by_name("x86-64-v2")  # every x86 can run it
HERE = (*targets(), OLD) if host().arch == OLD.arch else targets()
WITHOUT = pytest.mark.parametrize(
    "target", [x for x in HERE if not x.widens_f16], ids=str
)
ALL = np.arange(1 << 16, dtype=np.uint16).view(np.float16)


def widened(b: Any, x: Any) -> Any:
    return b.cast(x, np.dtype(np.float32))


@WITHOUT
def test_all_numbers(target: Any) -> None:
    got, exact = run(widened, ALL, target=target), ALL.astype(np.float32)
    number = ~np.isnan(ALL)
    assert (got.view(np.uint32) == exact.view(np.uint32))[number].all()
    assert np.isnan(got[~number]).all()


@WITHOUT
@pytest.mark.parametrize("bits", [0x0001, 0x83FF, 0x3C00, 0xFBFF, 0x7C00, 0xFC00])
def test_a_single_number(target: Any, bits: int) -> None:
    x = np.array([bits], np.uint16).view(np.float16)
    assert run(widened, x, target=target) == x.astype(np.float32)


@pytest.mark.parametrize("target", [t for t in TARGETS if not t.widens_f16], ids=str)
def test_vectors_are_not_taken_apart(target: Any) -> None:
    text = stage_text(program_of(widened, ((64, 256), "float16")), "asm", target)
    lines = [line.strip() for line in text.splitlines()]
    assert not count(lines, "call") and not count(lines, "pextr")
    products = ("mulps", "vfmul", "xvmulsp", "fmul.s")  # the last without vectors
    assert any(count(lines, word) for word in products)


def test_zvfh_widens_by_an_instruction() -> None:
    program = program_of(widened, ((64, 256), "float16"))
    found: list[bool] = []
    for name in ("riscv64+v", "riscv64+v+zvfhmin", "riscv64+v+zvfh"):
        text = stage_text(program, "asm", by_name(name))
        lines = [line.strip() for line in text.splitlines()]
        found.append(bool(count(lines, "vfwcvt.f.f.v")))
    assert found == [False, True, True]
