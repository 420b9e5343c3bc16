"""Contractions through the FMA nanokernel: numbers against float64, and registers."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given

from nanoloom.schedule.register_tile import swapped
from nanoloom.target import by_name
from tests.linalg.bounds import sample
from tests.vector.assembly import count, loop_with, touches_stack
from tests.vector.checks import check, contracted, few, odd_sizes
from tests.vector.kernel_harness import (
    Array,
    backwards,
    program_of,
    run,
    stage_text,
    targets,
)

TARGETS = pytest.mark.parametrize("target", targets(), ids=str)


def products(equation: str, right: Array, *, packed: bool) -> Any:
    """Builds the contraction; a packed right operand is a parameter of the program."""
    if packed:
        return lambda b, x: b.einsum(equation, x, b.constant(right))
    return lambda b, x, w: b.einsum(equation, x, w)


def compare(
    equation: str, left: Array, right: Array, *, packed: bool, **how: Any
) -> None:
    make = products(equation, right, packed=packed)
    given_arrays = (left,) if packed else (left, right)
    exact, magnitude, count = contracted(equation, left, right)
    check(run(make, *given_arrays, **how), exact, count, magnitude)


@pytest.mark.drawn
@TARGETS
@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize(("m", "n"), [(1, 130), (1, 64), (2, 768), (3, 768), (3, 517)])
def test_few_rows(target: Any, m: int, n: int, packed: bool) -> None:
    left, right = sample(m, (m, 97), "float32"), sample(n, (97, n), "float32")
    compare("mk,kn->mn", left, right, packed=packed, target=target, order=backwards)


@TARGETS
@few
@given(m=odd_sizes, k=odd_sizes, n=odd_sizes)
@example(m=1, k=1, n=1)
@example(m=127, k=97, n=127)
@example(m=13, k=33, n=1)
@example(m=1, k=130, n=97)
@example(m=230, k=5, n=65)  # several blocks of rows
def test_packed_weights(target: Any, m: int, k: int, n: int) -> None:
    left, right = sample(m, (m, k), "float32"), sample(n, (k, n), "float32")
    compare("mk,kn->mn", left, right, packed=True, target=target, order=backwards)


@TARGETS
@few
@given(m=odd_sizes, k=odd_sizes, n=odd_sizes)
@example(m=1, k=7, n=1)
@example(m=31, k=1, n=17)
@example(m=129, k=33, n=127)
def test_two_activations(target: Any, m: int, k: int, n: int) -> None:
    left, right = sample(k, (m, k), "float32"), sample(m, (k, n), "float32")
    compare("mk,kn->mn", left, right, packed=False, target=target, order=backwards)


@pytest.mark.drawn
@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize(
    ("equation", "left", "right"),
    [
        ("km,kn->mn", (17, 13), (17, 31)),
        ("mk,nk->mn", (13, 33), (31, 33)),
        ("km,nk->mn", (7, 13), (97, 7)),
        ("mk,kn->nm", (13, 17), (17, 31)),
        ("bmk,kn->bmn", (3, 7, 17), (17, 13)),
        ("bmk,bkn->bmn", (3, 7, 17), (3, 17, 13)),
        ("bmk,bnk->bmn", (2, 13, 31), (2, 17, 31)),
        ("bhmk,bhnk->bhmn", (2, 3, 7, 16), (2, 3, 13, 16)),
        ("bmhk,bnhk->bhmn", (2, 7, 3, 16), (2, 13, 3, 16)),
        ("bhmk,hkn->bhmn", (2, 3, 7, 5), (3, 5, 33)),
        ("bmk,bkn->bmn", (1, 1, 17), (1, 17, 13)),
        ("bmk,bkn->bmn", (0, 3, 17), (0, 17, 13)),
        ("mkl,kln->mn", (7, 3, 5), (3, 5, 19)),
        ("mk,k->m", (13, 17), (17,)),
        ("k,kn->n", (17,), (17, 33)),
        ("k,k->", (97,), (97,)),
    ],
)
def test_forms(
    equation: str, left: tuple[int, ...], right: tuple[int, ...], packed: bool
) -> None:
    one, other = sample(1, left, "float32"), sample(2, right, "float32")
    compare(equation, one, other, packed=packed, order=backwards)


@pytest.mark.drawn
@TARGETS
@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("m, k, n", [(13, 33, 31), (1, 64, 9)])
def test_doubles(target: Any, m: int, k: int, n: int, packed: bool) -> None:
    left, right = sample(5, (m, k), "float64"), sample(6, (k, n), "float64")
    make = products("mk,kn->mn", right, packed=packed)
    got = run(make, *((left,) if packed else (left, right)), target=target)
    exact = left.astype(np.longdouble) @ right.astype(np.longdouble)
    magnitude = (abs(left) @ abs(right)).astype(np.float64)
    check(got, exact.astype(np.float64), k, magnitude)


@pytest.mark.parametrize("name", ["int8", "uint8", "int32", "uint32", "int64"])
def test_integers(name: str) -> None:
    """No nanokernel takes them yet: vector loops, exact modulo the type's width."""
    left, right = sample(3, (7, 19), name, 0, 9), sample(4, (19, 13), name, 0, 9)
    got = run(lambda b, x, w: b.einsum("mk,kn->mn", x, w), left, right)
    check(got, left @ right, 0)


def test_a_sum_without_terms_is_zero() -> None:
    left, right = np.empty((3, 0), np.float32), np.empty((0, 5), np.float32)
    got = run(lambda b, x, w: b.einsum("mk,kn->mn", x, w), left, right)
    assert got.shape == (3, 5)
    assert not got.any()


# ---- what the inner loop is made of --------------------------------------------------


def assembly(m: int, k: int, n: int, target: str) -> tuple[str, int, int, int]:
    """The assembly of a packed product, the rows and vectors of its tile, and how many
    steps of the sum are a round of its loop."""
    make = products("mk,kn->mn", np.zeros((k, n), np.float32), packed=True)
    program = program_of(make, ((m, k), "float32"))
    script = stage_text(program, "schedule", by_name(target))
    return stage_text(program, "asm", by_name(target)), *tile_of(script)


def tile_of(script: str) -> tuple[int, int, int]:
    """The rows and vectors of a nanokernel's tile, and its steps in a round."""
    words = (
        re.search(rf"\b{x} = (\d+)", script) for x in ("rows", "vectors", "unroll")
    )
    rows, vectors, steps = (int(word[1]) for word in words if word)
    return rows, vectors, steps


@pytest.mark.drawn
@pytest.mark.parametrize("sizes", [(96, 256, 256), (31, 97, 127)], ids=str)
@pytest.mark.parametrize(
    ("target", "register"),
    [("x86-64-v3", "ymm"), ("sapphirerapids", "zmm"), ("znver5", "zmm")],
)
def test_x86_inner_loop(
    sizes: tuple[int, int, int], target: str, register: str
) -> None:
    """A step: rows x vectors multiply-adds, vectors loads, rows broadcasts, no more."""
    text, rows, vectors, steps = assembly(*sizes, target)
    loop = loop_with(text, "vfmadd")
    work = [line for line in loop if register in line]
    assert count(loop, "vfmadd") == steps * rows * vectors
    assert count(work, "vmovups") == steps * vectors
    assert count(work, "vbroadcastss") == steps * rows
    assert len(work) == steps * (rows * vectors + rows + vectors)
    assert touches_stack(loop) == []


@pytest.mark.parametrize(
    ("sizes", "loads"), [((1, 97, 64), 0), ((2, 97, 96), 6), ((3, 97, 96), 4)], ids=str
)
def test_swapped_roles(sizes: tuple[int, int, int], loads: int) -> None:
    """A wide and low tile holds its rows' numbers: what one uses lies in memory."""
    text, rows, vectors, steps = assembly(*sizes, "x86-64-v3")
    assert swapped(rows, vectors, 16)
    loop = loop_with(text, "vfmadd")
    assert count(loop, "vfmadd") == steps * rows * vectors
    assert count(loop, "vbroadcastss") == steps * rows
    assert count(loop, "vmovups") == steps * loads
    assert touches_stack(loop) == []


@pytest.mark.parametrize(
    ("target", "word"), [("aarch64", "fmla"), ("neoverse-v2", "fmla")]
)
def test_other_inner_loops(target: str, word: str) -> None:
    text, rows, vectors, steps = assembly(96, 256, 256, target)
    loop = loop_with(text, word)
    assert count(loop, word) == steps * rows * vectors
    assert touches_stack(loop) == []


def test_a_spilled_register_would_be_found() -> None:
    text = """
    .LBB0_1:
        vmovups 64(%rsp), %zmm1
        vfmadd231ps %zmm1, %zmm2, %zmm3
        jne .LBB0_1
    """
    loop = loop_with(text, "vfmadd")
    assert touches_stack(loop) == ["vmovups 64(%rsp), %zmm1"]
