"""Attention as one kernel: which programs join, and their numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nanoloom.linalg.builder.scalar import BOOL, constant, select
from nanoloom.linalg.reductions.softmax import normalized
from nanoloom.target import Target
from nanoloom.target.host import host
from tests.kernels.attention_programs import (
    Attention,
    attention_program,
    exact,
    roots,
)
from tests.linalg.bounds import EPS, sample
from tests.vector.checks import check
from tests.vector.kernel_harness import (
    Array,
    Order,
    at_once,
    backwards,
    executable,
    program_of,
    targets,
)
from tests.vector.nanokernel.reference import machine

SHAPES = [
    Attention((2, 3), 197, 197, 40),
    Attention((2, 3), 17, 33, 40, masked=True),
    Attention((), 5, 197, 40),
    Attention((2,), 130, 100, 64, masked=True),
    Attention((3,), 1, 197, 40, masked=True),  # as of the next word of a text
    Attention((2,), 3, 5000, 16),  # of scores no task takes all the bytes it may
    Attention((2, 2, 2), 9, 13, 7),
    Attention((1, 2), 64, 64, 32, masked=True),
    Attention((2, 3), 17, 33, 40, masked=True, dtype="float64"),
]
SINGLE = [
    *(x for x in SHAPES if x.dtype == "float32"),
    Attention((2,), 130, 100, 40),  # both sums end within a tile register
    Attention((2,), 17, 96, 64),
]
TARGETS = pytest.mark.parametrize("target", targets(), ids=str)
PLAIN = Attention((2, 3), 17, 33, 40)
BEHIND = ("elementwise", "contraction", "reduction", "contraction")


def joined(program: Any) -> bool:
    return roots(program).count("contractions") == 1


def compare(
    given: Attention, target: Target, *, bf16: bool = False, order: Order = at_once
) -> Array:
    """One kernel, no buffer for scores, and the numbers."""
    inputs = given.inputs()
    program = attention_program(given.make, *inputs, bf16=bf16)
    assert joined(program)
    scores = int(np.prod(given.shared)) * given.rows * given.keys
    widths = {np.dtype(given.dtype).itemsize} | ({2} if bf16 else set())
    assert not {scores * width for width in widths} & set(program.buffers)
    (got,) = executable(program, target)(*inputs, order=order)
    wanted, bound = exact(given, *inputs, bf16=bf16)
    check(got, wanted, 1, bound / EPS[got.dtype])
    return got


# ---- numbers -------------------------------------------------------------------------


@pytest.mark.drawn(one_in=4)
@TARGETS
@pytest.mark.parametrize("given", SHAPES, ids=str)
def test_numbers(given: Attention, target: Target) -> None:
    compare(given, target, order=backwards)


@pytest.mark.drawn(one_in=4)
@pytest.mark.parametrize("given", SINGLE, ids=str)
@pytest.mark.parametrize("name", ["", "x86-64-v3", "sierraforest"])
def test_bf16(given: Attention, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Products of bf16 numbers; the probabilities are rounded to bf16 once."""
    target = machine(name, monkeypatch) if name else host()
    compare(given, target, bf16=True, order=backwards)


@pytest.mark.drawn
@TARGETS
@pytest.mark.parametrize("rows, keys", [(33, 33), (17, 50)])
def test_a_causal_mask(rows: int, keys: int, target: Target) -> None:
    """-inf above the diagonal: what it excludes has no part in the result."""
    given = Attention((2,), rows, keys, 24, masked=True)
    q, k, v, _ = given.inputs()
    mask = np.where(np.tri(rows, keys, dtype=bool), 0, -np.inf).astype(np.float32)
    (got,) = executable(program_of(given.make, q, k, v, mask), target)(q, k, v, mask)
    wanted, bound = exact(given, q, k, v, mask)
    check(got, wanted, 1, bound / EPS[got.dtype])
    first = v[:, :1].astype(np.float64)
    assert (got[:, :1] == first).all()  # of the first row only one key is left


@TARGETS
def test_a_row_without_keys_is_nan(target: Target) -> None:
    """-inf minus -inf, as ONNX's reference computes it; other rows are numbers."""
    given = Attention((2,), 19, 33, 24, masked=True)
    q, k, v, mask = given.inputs()
    mask[7] = -np.inf
    program = program_of(given.make, q, k, v, mask)
    assert joined(program)
    (got,) = executable(program, target)(q, k, v, mask)
    assert np.isnan(got[:, 7]).all()
    others = np.arange(given.rows) != 7
    wanted, bound = exact(given, q, k, v, np.where(np.isinf(mask), 0, mask))
    check(got[:, others], wanted[:, others], 1, bound[:, others] / EPS[got.dtype])


def in_threes(tasks: int) -> list[tuple[int, int]]:
    return [(i, min(i + 3, tasks)) for i in range(0, tasks, 3)]


@pytest.mark.drawn
@TARGETS
@pytest.mark.parametrize("bf16", [False, True])
def test_any_order_gives_the_same(bf16: bool, target: Target) -> None:
    given = Attention((2, 3), 200, 197, 40, masked=True)
    target = host() if bf16 else target
    one = compare(given, target, bf16=bf16)
    for order in (backwards, in_threes):
        assert compare(given, target, bf16=bf16, order=order).tobytes() == one.tobytes()


def test_a_wrong_result_fails() -> None:
    """Another scale, or a mask that was forgotten, is found."""
    given = Attention((2,), 17, 33, 24, masked=True)
    inputs = given.inputs()
    wanted, bound = exact(given, *inputs)
    for wrong in (replace(given, scale=0.26), replace(given, masked=False)):
        used = inputs[: 4 if wrong.masked else 3]
        (got,) = executable(program_of(wrong.make, *used), host())(*used)
        assert not (abs(got - wanted) <= bound).all()


# ---- which programs join -------------------------------------------------------------


def rest(given: Attention, change: Any) -> list[str]:
    """The calls of a program whose scores `change` has worked on."""

    def make(b: Any, q: Any, k: Any, v: Any, *others: Any) -> Any:
        return change(b, given.scores(b, q, k), v, *others)

    return roots(program_of(make, *given.inputs()))


def share(b: Any, scores: Any) -> Any:
    return normalized(b, scores, [scores.rank - 1], scores.dtype)


def test_operations_behind_the_scores() -> None:
    """Scaled, capped and masked by a condition, all of it in registers."""
    allowed = sample(5, (17, 33), "bool")

    def change(b: Any, scores: Any, v: Any) -> Any:
        capped = b.elementwise(lambda s: s.math("tanh") * 30, scores)
        kept = b.elementwise(
            lambda s, t: select(t, s, constant(-1e9, s.dtype)),
            capped,
            b.constant(allowed, BOOL),
        )
        return PLAIN.weigh(b, share(b, kept), v)

    assert rest(PLAIN, change)[-1] == "contractions"
    assert "contraction" not in rest(PLAIN, change)


def test_operations_behind_the_product() -> None:
    def change(b: Any, scores: Any, v: Any) -> Any:
        made = PLAIN.weigh(b, share(b, scores), v)
        return b.elementwise(lambda s: s.maximum(0), made)

    assert rest(PLAIN, change)[-1] == "contractions"


def test_scores_that_are_an_output() -> None:
    def change(b: Any, scores: Any, v: Any) -> Any:
        return [scores, PLAIN.weigh(b, share(b, scores), v)]

    assert "contractions" not in rest(PLAIN, change)


def test_probabilities_that_are_an_output() -> None:
    def change(b: Any, scores: Any, v: Any) -> Any:
        p = share(b, scores)
        return [p, PLAIN.weigh(b, p, v)]

    assert "contractions" not in rest(PLAIN, change)


def test_probabilities_with_two_readers() -> None:
    def change(b: Any, scores: Any, v: Any) -> Any:
        p = share(b, scores)
        other = b.elementwise(lambda s: s + s, v)
        return [PLAIN.weigh(b, p, v), PLAIN.weigh(b, p, other)]

    assert "contractions" not in rest(PLAIN, change)


def test_softmax_over_another_dimension() -> None:
    def change(b: Any, scores: Any, v: Any) -> Any:
        return PLAIN.weigh(b, normalized(b, scores, [2], scores.dtype), v)

    assert "contractions" not in rest(PLAIN, change)


def test_scores_without_softmax() -> None:
    def change(b: Any, scores: Any, v: Any) -> Any:
        return PLAIN.weigh(b, scores, v)

    assert tuple(rest(PLAIN, change)) == ("elementwise", "contraction", "contraction")


def test_rows_that_are_longer_than_the_cache() -> None:
    """Kernels apart; keys of two numbers are read where they lie, not turned first."""
    given = Attention((), 3, 20000, 2)
    assert tuple(roots(program_of(given.make, *given.inputs()))) == BEHIND[1:]
