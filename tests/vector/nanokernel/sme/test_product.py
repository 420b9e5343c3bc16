"""SME: the function of outer products, what calls it, and what is refused."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from nanoloom.errors import Error
from nanoloom.schedule.choose import choose
from nanoloom.schedule.language import Nanokernel, Parallel
from nanoloom.target import by_name
from tests.vector.assembly import count, loop_with, touches_stack
from tests.vector.kernel_harness import Make, program_of, stage_text
from tests.vector.nanokernel.tile_products import product

TARGET = by_name("aarch64+sme")
Kernel = tuple[Make, tuple[np.ndarray, ...]]


def ones(*shape: int, kind: str = "float32") -> np.ndarray:
    return np.ones(shape, kind)


def kernel(
    m: int, k: int, n: int, equation: str = "mk,kn->mn", kind: str = "float32"
) -> Kernel:
    """A product with a weight."""
    sizes = {"m": m, "k": k, "n": n}
    left, right = (
        ones(*(sizes[x] for x in word), kind=kind)
        for word in equation.partition("->")[0].split(",")
    )
    return product(equation, right, packed=True), (left,)


def words_of(made: Kernel, target: str = "aarch64+sme") -> tuple[Any, ...]:
    (each,) = program_of(made[0], *made[1]).kernels.values()
    return choose(each.nest, by_name(target)).directives


def family_of(made: Kernel, target: str = "aarch64+sme") -> str:
    found = [word for word in words_of(made, target) if isinstance(word, Nanokernel)]
    return found[0].family if found else ""


# ---- text


def test_the_inner_loop() -> None:
    """Two vectors by two: four loads, four products, no vector instruction besides."""
    make, given = kernel(96, 256, 384)
    text = stage_text(program_of(make, *given), "asm", TARGET)
    loop = loop_with(text, "fmopa")
    assert count(loop, "fmopa") == 4
    assert len([x for x in loop if re.match(r"\s*(ldr\tz|ld1w)", x)]) == 4
    assert len(loop) <= 16 and touches_stack(loop) == []


def test_the_mode_is_the_functions_own() -> None:
    """On and off once, and nothing of libraries: no state is kept for others."""
    make, given = kernel(96, 256, 384)
    text = stage_text(program_of(make, *given), "asm", TARGET)
    body = text[text.index("\nouter_products:") :]
    body = body[: body.index(".Lfunc_end")]
    assert [body.count(f"smstart\t{x}") for x in ("sm", "za")] == [1, 1]
    assert [body.count(f"smstop\t{x}") for x in ("sm", "za")] == [1, 1]
    assert text.count("smstart") == 2
    assert "__arm" not in text and "\tbl\t" not in body


def test_two_products_share_the_function() -> None:
    def make(b: Any, x: Any, y: Any, z: Any) -> Any:
        return b.einsum("mk,kn->mn", x, y), b.einsum("mk,kn->mn", x, z)

    program = program_of(make, ones(32, 16), ones(16, 24), ones(16, 24))
    text = stage_text(program, "llvm", TARGET)
    assert text.count("define internal void @outer_products(") == 1
    assert "horiz.p0(" not in text and "vert.p0(" not in text


# ---- what is chosen


@pytest.mark.parametrize("target", ["aarch64+sme", "aarch64+sve2+sme"])
def test_tasks_are_panels_alike(target: str) -> None:
    made = words_of(kernel(96, 64, 384), target)
    assert Parallel("product", (0, 192, 0), ("all",)) in made
    (plan,) = (word for word in made if isinstance(word, Nanokernel))
    assert (plan.family, plan.rows, plan.vectors, plan.packed) == ("sme", 8, 2, True)


@pytest.mark.parametrize(
    "made",
    [
        kernel(7, 64, 64),  # most of a tile would be empty
        kernel(64, 7, 64),
        kernel(64, 64, 7),
        kernel(64, 64, 64, kind="float64"),
        kernel(64, 64, 64, "km,kn->mn"),  # rows of the left operand lie apart
    ],
)
def test_what_is_left_to_vectors(made: Kernel) -> None:
    assert family_of(made) != "sme"
    assert family_of(kernel(8, 8, 8)) == "sme"
    assert family_of(kernel(8, 8, 8), "aarch64+sve2") != "sme"


# ---- refusals


def refusal(made: Kernel, old: str, new: str, target: str = "aarch64+sme") -> str:
    """What is said about the chosen script with a change, in one sentence."""
    program = program_of(made[0], *made[1])
    script = stage_text(program, "schedule", TARGET)
    script = script[: script.index("\n}\n") + 3]
    assert old in script
    with pytest.raises(Error) as found:
        stage_text(program, "llvm", by_name(target), script=script.replace(old, new))
    assert "\n" not in str(found.value)
    return str(found.value)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("depth = 0", "depth = 8", "cut and copy by themselves"),
        ("vectors = 2", "vectors = 1", "sme wants vectors = 2 and at most 32 rows"),
        ("constant 4", "constant 8", "family sme has vectors of 4 sums in f32"),
        ("unroll = 1", "unroll = 2", "family sme has 1 to 1 steps"),
        ("packed = 1", "packed = 0", "packed, the nanokernel says otherwise"),
    ],
)
def test_other_words(old: str, new: str, said: str) -> None:
    assert said in refusal(kernel(32, 32, 32), f"{old} : i64", f"{new} : i64")


def test_a_target_without_tiles() -> None:
    said = refusal(kernel(32, 32, 32), "rows = 8", "rows = 8", "aarch64+sve2")
    assert "aarch64+sve2 has no instruction for family sme of f32 by f32" in said
