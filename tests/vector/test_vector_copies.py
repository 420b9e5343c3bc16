"""Copies that are no stage: the script says in which vectors, or they are plain."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nanoloom.errors import Error
from nanoloom.kernels.program import Program
from nanoloom.nest.extent import Lanes
from nanoloom.notation import Buffer, Computation, axes, computation
from nanoloom.schedule.choose import choose
from nanoloom.schedule.language import (
    ALL,
    CopyOperand,
    Nanokernel,
    Parallel,
    Schedule,
    Tile,
)
from nanoloom.target import Target, by_name
from tests.filecheck import check_text
from tests.linalg.bounds import sample, wide
from tests.notation.programs import kernels
from tests.vector.checks import check
from tests.vector.kernel_harness import (
    backwards,
    executable,
    program_of,
    run,
    stage_text,
    targets,
)

AVX2, RVV = by_name("x86-64-v3"), by_name("rv64gcv")
WIDTH = '"nanoloom.copies"'


def second_half(b: Any, x: Any) -> Any:
    """A part of a tensor as it is: nothing is left of the stage but a copy."""
    return b.slice(x, [2, 0], [3, 19])


def copying() -> Program:
    return program_of(second_half, ((9, 19), "float32"))


def chosen(target: Target) -> str:
    (kernel,) = copying().kernels.values()
    return choose(kernel.nest, target).to_transform(kernel.nest)


def without_widths(script: str) -> str:
    return "\n".join(line for line in script.splitlines() if WIDTH not in line)


def test_the_script_says_the_vectors_of_a_stage_that_only_copies() -> None:
    said = "CHECK: " + WIDTH + "({{.*}}, %"
    check_text(chosen(AVX2), said + "lanes8) {bits = 32 : i64, scalable = 0 : i64}")
    check_text(chosen(RVV), said + "scalable8) {bits = 32 : i64, scalable = 1 : i64}")


def test_what_computes_is_said_of_itself() -> None:
    (kernel,) = program_of(
        lambda b, x: b.einsum("mn->nm", x), ((9, 19), "float32")
    ).kernels.values()
    assert WIDTH not in choose(kernel.nest, AVX2).to_transform(kernel.nest)


@pytest.mark.parametrize("script", [chosen(AVX2), without_widths(chosen(AVX2))])
def test_vectors_as_the_script_says(script: str) -> None:
    """And without a word one number after the other."""
    text = stage_text(copying(), "vector", AVX2, script=script)
    assert ("vector<8xf32>" in text) == (WIDTH in script)
    assert "vector<" in text or "memref.store" in text


def test_a_scalable_vector_is_as_wide_as_the_stage_says() -> None:
    text = stage_text(copying(), "vector", RVV, script=chosen(RVV))
    check_text(text, "CHECK: vector.store {{.*}} vector<[8]xf32>")


def test_other_vectors_of_another_width() -> None:
    script = chosen(AVX2).replace("constant 8", "constant 4")
    text = stage_text(copying(), "vector", AVX2, script=script)
    assert "vector<4xf32>" in text
    script = chosen(AVX2).replace("bits = 32", "bits = 16")
    assert "vector<" not in stage_text(copying(), "vector", AVX2, script=script)


def test_lanes_that_there_are_not() -> None:
    script = chosen(AVX2).replace("constant 8", "constant 6")
    with pytest.raises(Error, match="lanes = 6: a power of two up to 256 is wanted"):
        stage_text(copying(), "vector", AVX2, script=script)


@pytest.mark.parametrize("target", targets(), ids=str)
@pytest.mark.parametrize("words", [True, False], ids=["said", "plain"])
def test_numbers(target: Target, words: bool) -> None:
    x = sample(1, (9, 19), "float32")
    script = chosen(target)
    script = script if words else without_widths(script)
    got = run(second_half, x, target=target, order=backwards, script=script)
    assert np.array_equal(got, x[2:5])


# ---- copies that words make ----------------------------------------------------------


def product(m: int, k: int, n: int) -> Computation:
    i, j, r = axes("i j r")
    a, b, c = Buffer("a", (m, k)), Buffer("b", (k, n)), Buffer("c", (m, n))
    c[i, j] += a[i, r] * b[r, j]
    return computation(c)


@pytest.mark.parametrize(
    "lanes", [Lanes(1), Lanes(4), Lanes(8), Lanes(4, True)], ids=str
)
def test_a_copied_operand(lanes: Lanes) -> None:
    """Only in the vectors that are said: the stage itself has none here."""
    words = Parallel("c", (3, 0, 0), ALL), CopyOperand("c", 1, lanes)
    text = stage_text(
        kernels(product(6, 9, 64)),
        "vector",
        RVV if lanes.scalable else AVX2,
        script=Schedule(words),
    )
    if lanes == Lanes(1):
        assert "vector<" not in text
    else:
        check_text(text, f"CHECK: vector.store {{{{.*}}}} vector<{lanes}xf32>")


def multiplied(target: Target, lanes: int, **words: Any) -> Schedule:
    return Schedule((
        Parallel("c", (0, 16, 0), ALL), Tile("c", (3, 0, 0), ALL),
        Nanokernel(3, 16 // lanes, Lanes(lanes), False, stage="c", **words),
    ))  # fmt: skip


@pytest.mark.drawn
@pytest.mark.parametrize("target", targets(), ids=str)
@pytest.mark.parametrize("lanes", [4, 8])
@pytest.mark.parametrize("copied", ["", "front", "between"])
def test_multiply_adds_of_shorter_vectors(
    target: Target, lanes: int, copied: str
) -> None:
    lanes = min(lanes, target.lanes(32))
    program = kernels(product(7, 9, 70))
    script = multiplied(target, lanes, copy_rhs=copied)
    (kernel,) = program.kernels.values()
    a, b = sample(1, (7, 9), "float32"), sample(2, (9, 70), "float32")
    made = executable(program, target, script.to_transform(kernel.nest))
    (got,) = made(a, b, order=backwards)
    check(got, wide(a) @ wide(b), 10, abs(wide(a)) @ abs(wide(b)))
    text = stage_text(program, "vector", target, script=script)
    assert f": vector<{lanes}xf32>" in text
    assert "vector<16xf32>" not in text


def test_a_nanokernel_knows_how_wide_vectors_are() -> None:
    (kernel,) = kernels(product(7, 9, 70)).kernels.values()
    words = (Nanokernel(3, 2, Lanes(4, scalable=True), False, stage="c"),)
    with pytest.raises(Error, match="nanokernels know how wide vectors are"):
        Schedule(words).to_transform(kernel.nest)


def test_shorter_vectors_of_other_families() -> None:
    """Their instructions are as wide as the registers."""
    script = Schedule((
        Parallel("product", (0, 16, 0), ALL), Tile("product", (3, 0, 0), ALL),
        Nanokernel(3, 4, Lanes(4), False, "int8-pairs"),
    ))  # fmt: skip
    shapes = ((7, 9), "int8"), ((9, 70), "int8")
    program = program_of(
        lambda b, x, y: b.einsum("mk,kn->mn", x, y, dtype=np.dtype(np.int32)), *shapes
    )
    with pytest.raises(Error, match="family int8-pairs has vectors of 8 sums in i32"):
        stage_text(program, "vector", AVX2, script=script)
