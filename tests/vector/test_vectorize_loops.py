"""Elementwise loops: every type, rank, broadcast and length, vectors and their rest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nanoloom.ir.mlir import ir
from nanoloom.linalg.builder.builder import PARALLEL, Map
from nanoloom.linalg.builder.scalar import select
from nanoloom.linalg.builder.tensor import Tensor
from nanoloom.target import by_name
from tests.filecheck import check_text
from tests.linalg.bounds import INTEGERS, dtype_of, sample, wide
from tests.vector.checks import check, few
from tests.vector.kernel_harness import (
    at_once,
    backwards,
    program_of,
    run,
    stage_text,
    targets,
)

TARGETS = pytest.mark.parametrize("target", targets(), ids=str)
RANKS = [(), (31,), (3, 17), (2, 3, 33), (2, 3, 5, 7), (2, 3, 1, 5, 19)]
TYPES = (*INTEGERS, "float32", "float64", "float16", "bool")


def fused(b: Any, x: Any, y: Any) -> Any:
    return b.elementwise(lambda s, t: s * t + s, x, y)


@TARGETS
@pytest.mark.parametrize("shape", RANKS, ids=str)
def test_ranks(target: Any, shape: tuple[int, ...]) -> None:
    x, y = sample(1, shape, "float32"), sample(2, shape, "float32")
    exact = wide(x) * wide(y) + wide(x)
    got = run(fused, x, y, target=target, order=backwards)
    check(got, exact, 2, abs(wide(x) * wide(y)) + abs(x))


@few
@given(length=st.integers(1, 130))
@example(length=15)
@example(length=16)
@example(length=17)
@example(length=9000)  # more than one task
def test_lengths(length: int) -> None:
    x, y = sample(1, (length,), "float32"), sample(2, (length,), "float32")
    exact = wide(x) * wide(y) + wide(x)
    got = run(fused, x, y, order=backwards)
    check(got, exact, 2, abs(wide(x) * wide(y)) + abs(x))


@pytest.mark.drawn
@TARGETS
@pytest.mark.parametrize("name", INTEGERS)
def test_integers_wrap(target: Any, name: str) -> None:
    limits = np.iinfo(name)
    r = np.random.default_rng(7)
    x = r.integers(limits.min, limits.max, (3, 37), np.dtype(name), True)
    y = r.integers(limits.min, limits.max, (3, 37), np.dtype(name), True)
    got = run(fused, x, y, target=target)
    check(got, x * y + x, 0)
    larger = run(
        lambda b, x, y: b.elementwise(lambda s, t: s > t, x, y, dtype=np.dtype(bool)),
        x, y, target=target,
    )  # fmt: skip
    check(larger, x > y, 0)


@pytest.mark.parametrize("name", ["float64", "float16"])
def test_other_floats(name: str) -> None:
    """f16 is computed in f32 and rounded once."""
    x, y = sample(1, (5, 13), name), sample(2, (5, 13), name)
    exact = wide(x) * wide(y) + wide(x)
    check(run(fused, x, y), exact, 2, abs(wide(x) * wide(y)) + abs(wide(x)))


def test_bools() -> None:
    x, y = sample(1, (5, 21), "bool"), sample(2, (5, 21), "bool")
    got = run(lambda b, x, y: b.elementwise(lambda s, t: (s & t) ^ ~s, x, y), x, y)
    check(got, (x & y) ^ ~x, 0)


def test_bool_chooses_between_wider_numbers() -> None:
    """Three widths in one loop: bytes, f32 and f64."""
    condition = sample(1, (5, 21), "bool")
    x, y = sample(2, (5, 21), "float64"), sample(3, (5, 21), "float32")

    def make(b: Any, c: Any, x: Any, y: Any) -> Any:
        return b.elementwise(
            lambda p, s, t: select(p, s, t.cast(np.dtype(np.float64))),
            c, x, y, dtype=np.dtype(np.float64),
        )  # fmt: skip

    got = run(make, condition, x, y)
    assert (got == np.where(condition, x, y.astype(np.float64))).all()
    assert not (got == np.where(~condition, x, y.astype(np.float64))).all()


@pytest.mark.drawn
@pytest.mark.parametrize("source", ["float32", "float64", "int64", "int8", "uint8"])
@pytest.mark.parametrize("made", ["float32", "float64", "int32", "int8", "uint16"])
def test_casts(source: str, made: str) -> None:
    x = sample(1, (3, 29), source, 0 if made.startswith("u") else -90, 90)
    x = np.abs(x) if made.startswith("u") else x
    got = run(lambda b, x: b.cast(x, dtype_of(made)), x)
    assert got.dtype == dtype_of(made)
    check(got, x.astype(made), 0)


BROADCASTS = [
    ((3, 17), (17,)),
    ((3, 17), (3, 1)),
    ((3, 1), (1, 17)),
    ((2, 3, 17), (3, 1)),
    ((2, 1, 5), (1, 3, 1)),
    ((5, 1, 7), (1, 6, 1)),
    ((1,), (31,)),
    ((), (2, 3)),
    ((4, 1, 1), (1, 1, 19)),
]


@pytest.mark.parametrize(("one", "other"), BROADCASTS, ids=str)
def test_broadcasts(one: tuple[int, ...], other: tuple[int, ...]) -> None:
    x, y = sample(1, one, "float32"), sample(2, other, "float32")
    exact = wide(x) * wide(y) + wide(x)
    got = run(fused, x, y, order=backwards)
    check(got, exact, 2, abs(wide(x) * wide(y)) + abs(x))


@TARGETS
def test_functions_of_f32(target: Any) -> None:
    """Polynomials in vectors, also in the masked rest; at most 8 units in all."""
    x = sample(1, (3, 21), "float32")
    got = run(
        lambda b, x: b.elementwise(lambda s: s.math("exp") + s.math("tanh"), x),
        x, target=target,
    )  # fmt: skip
    exact = np.exp(wide(x)) + np.tanh(wide(x))
    check(got, exact, 9, np.exp(wide(x)) + abs(np.tanh(wide(x))))


def test_functions_of_f64_are_calls() -> None:
    x = sample(1, (3, 21), "float64")
    got = run(lambda b, x: b.elementwise(lambda s: s.math("exp"), x), x)
    check(got, np.exp(x), 2)


def test_integers_are_not_divided_by_what_lies_behind_the_end() -> None:
    """A masked lane holds 1: it divides without a trap."""
    x, y = sample(1, (3, 5), "int32", -90, 90), sample(2, (3, 5), "int32", 1, 9)
    got = run(lambda b, x, y: b.elementwise(lambda s, t: s / t, x, y), x, y)
    check(got, np.trunc(x / y).astype(np.int32), 0)


def test_indices_and_gathers() -> None:
    """The element's place in numbers, and a load from a place that data chooses."""
    table, places = sample(1, (7, 13), "float32"), sample(2, (31,), "int64", 0, 6)

    def make(b: Any, table: Any, places: Any) -> Any:
        source, at = b.value(table), b.value(places)
        return b.generate(
            (31, 13), table.dtype,
            lambda i, j: b.load(
                source, table.dtype, [b.load(at, places.dtype, [i]), j]
            ) + j.cast(table.dtype),
        )  # fmt: skip

    exact = table[places].astype(np.float64) + np.arange(13)
    check(run(make, table, places, order=backwards), exact, 1)


@pytest.mark.parametrize("step", [2, 3])
def test_every_other_element(step: int) -> None:
    """An operand that is strided along the vector: one load a lane, no mask."""
    x = sample(1, (3, 20 * step), "float32")

    def make(b: Any, x: Any) -> Any:
        d = ir.AffineDimExpr.get
        strided = Map.get(2, 0, [d(0), d(1) * step])
        out = Tensor((3, 20), x.dtype, b.empty((3, 20), x.dtype))
        shape = b.value(b.full((20,), 0, x.dtype))
        extent = (b.tensor(shape, x.dtype), Map.get(2, 0, [d(1)]))
        return b.generic(
            [(x, strided), extent], [(out, Map.get_identity(2))], [PARALLEL] * 2,
            lambda s, zero, _: s + s + zero,
        )[0]  # fmt: skip

    check(run(make, x), 2 * wide(x[:, ::step]), 0)


@pytest.mark.parametrize("order", [at_once, backwards])
def test_tasks_do_not_depend_on_each_other(order: Any) -> None:
    x = sample(1, (130, 257), "float32")
    program = program_of(lambda b, x: b.elementwise(lambda s: s * s, x), x)
    assert len(program.calls) == 1
    got = run(lambda b, x: b.elementwise(lambda s: s * s, x), x, order=order)
    assert (got == x * x).all()


# ---- text ----------------------------------------------------------------------------


def test_the_rest_of_a_row_is_one_masked_step() -> None:
    program = program_of(fused, ((3, 37), "float32"), ((3, 37), "float32"))
    text = stage_text(program, "vector", by_name("sapphirerapids"))
    check_text(
        text,
        """
    CHECK: scf.for {{.*}} to %c96 step %c16
    CHECK-COUNT-2: vector.load {{.*}} vector<16xf32>
    CHECK: vector.store
    CHECK: vector.create_mask %c15
    CHECK-COUNT-2: vector.maskedload
    CHECK: vector.maskedstore
    CHECK-NOT: memref.load
    """,
    )


def test_what_a_row_shares_is_loaded_once() -> None:
    """LLVM could not move it out of the loop, which writes to another buffer."""

    def make(b: Any, x: Any, y: Any) -> Any:
        return b.elementwise(lambda s, t: s * t, x, y)

    program = program_of(make, ((9, 70), "float32"), ((9, 1), "float32"))
    check_text(
        stage_text(program, "vector", by_name("sapphirerapids")),
        """
    CHECK: memref.load
    CHECK-NEXT: scf.for {{.*}} to %c64 step %c16
    CHECK-NOT: memref.load
    """,
    )


def test_bytes_fill_a_vector() -> None:
    program = program_of(fused, ((64,), "int8"), ((64,), "int8"))
    text = stage_text(program, "vector", by_name("sapphirerapids"))
    check_text(text, "CHECK: vector.store {{.*}} vector<64xi8>\n")
