"""f16 in vectors of any width: by integers, or by instructions where there are some.

tests/runtime/test_emulated_narrow.py has the numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nanoloom.target import by_name
from tests.vector.assembly import count
from tests.vector.kernel_harness import program_of, stage_text


def added(b: Any, x: Any, y: Any) -> Any:
    return b.elementwise(lambda s, t: s + t, x, y)


def rounded(b: Any, x: Any) -> Any:
    return b.cast(x, np.dtype(np.float16))


def assembly(name: str, kind: str, make: Any, operands: int) -> list[str]:
    program = program_of(make, *[((64, 250), kind)] * operands)
    text = stage_text(program, "asm", by_name(name))
    return [line.strip() for line in text.splitlines()]


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("riscv64+v", "vfadd.vv"),  # of f32, which the shift below makes f16
        ("riscv64+v+zvfhmin", "vfncvt.f.f.w"),
        ("riscv64+v+zvfh", "vfadd.vv"),
        ("aarch64+sve", "fadd"),
    ],
)
def test_vectors_are_not_taken_apart(name: str, word: str) -> None:
    lines = assembly(name, "float16", added, 2)
    assert count(lines, word) and not any("hfsf" in x or "sfhf" in x for x in lines)
    in_integers = name == "riscv64+v"
    assert bool(count(lines, "vnsrl.wi") or count(lines, "vsrl.vi")) == in_integers


@pytest.mark.parametrize("name", ["riscv64+v", "riscv64"])
def test_nothing_is_called_for_a_conversion(name: str) -> None:
    lines = assembly(name, "float32", rounded, 1)
    assert any("or" in x.split()[:1] or "vor.vv" in x for x in lines)
    assert not count(lines, "call")


def test_numbers_that_are_only_moved_are_integers_to_llvm() -> None:
    program = program_of(added, ((64, 250), "bfloat16"), ((64, 250), "bfloat16"))
    for name, moved in (("riscv64+v", True), ("neoverse-v2", False)):
        assert "xbf16>" in stage_text(program, "vector", by_name(name))
        text = stage_text(program, "llvm", by_name(name))
        assert ("x i16>" in text and "x bfloat>" not in text) == moved
