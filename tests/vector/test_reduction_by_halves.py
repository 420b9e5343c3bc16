"""Products of all lanes of vectors whose width is not known."""

from __future__ import annotations

import pytest

from benchmarks.assembly import inner_loops
from nanoloom.notation import Buffer, axes, computation
from nanoloom.target import by_name
from tests.notation.programs import kernels
from tests.vector.kernel_harness import stage_text

M, N = 7, 517


def text(name: str, kind: str, stage: str) -> str:
    i, j = axes("i j")
    x, y = Buffer("x", (M, N), kind), Buffer("y", (M,), kind)
    y[i] *= x[i, j]
    return stage_text(kernels(computation(y)), stage, by_name(name))


@pytest.mark.parametrize("kind", ["float32", "int32", "float64", "int8"])
@pytest.mark.parametrize(
    ("name", "halves", "alone"),
    [("rv64gcv", r"vector.scalable.extract", ("flw", "lw", "fld", "lb")),
     ("armv9-sve2", "vector.deinterleave", ("ldr s", "ldr d", "ldrb"))],
)  # fmt: skip
def test_lanes_are_halved(
    name: str, halves: str, alone: tuple[str, ...], kind: str
) -> None:
    """In rounds, as many as lanes have bits; no number is loaded alone."""
    shown = text(name, kind, "vector")
    assert "vector.deinterleave" in shown and halves in shown and "scf.while" in shown
    assert "vector.reduction" not in shown
    for loop in inner_loops(text(name, kind, "asm")):
        assert not [x for x in loop if x.replace("\t", " ").startswith(alone)]


def test_other_targets_have_an_instruction_order_of_their_own() -> None:
    shown = text("x86-64-v4", "float32", "vector")
    assert "vector.deinterleave" not in shown and "vector.reduction" in shown
