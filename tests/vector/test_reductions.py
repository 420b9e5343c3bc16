"""Reductions along rows, columns and everything; row kernels such as softmax."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nanoloom.ir.mlir import ir, linalg
from nanoloom.linalg.builder.builder import PARALLEL, REDUCTION, Map
from nanoloom.linalg.builder.scalar import from_index, select
from nanoloom.linalg.reductions.arguments import positions
from nanoloom.target import by_name
from tests.filecheck import check_text, problems
from tests.linalg.bounds import INTEGERS, sample, wide
from tests.vector.checks import Array, check, few
from tests.vector.kernel_harness import (
    backwards,
    program_of,
    run,
    stage_text,
    targets,
)

TARGETS = pytest.mark.parametrize("target", targets(), ids=str)


def total(axes: list[int], *, keepdims: bool = False) -> Any:
    return lambda b, x: b.reduce(lambda a, s: a + s, x, axes, 0, keepdims=keepdims)


def largest(b: Any, x: Any) -> Any:
    start = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    return b.reduce(lambda a, s: a.maximum(s), x, [-1], start, keepdims=False)


@TARGETS
@few
@given(length=st.integers(1, 100))
@example(length=1)
@example(length=16)
@example(length=65)
@example(length=100)
def test_sums_of_rows(target: Any, length: int) -> None:
    x = sample(length, (5, length), "float32")
    got = run(total([1]), x, target=target, order=backwards)
    check(got, wide(x).sum(1), length, abs(wide(x)).sum(1))


@pytest.mark.drawn
@pytest.mark.parametrize(
    "axes", [[0], [1], [2], [0, 1], [0, 2], [1, 2], [0, 1, 2]], ids=str
)
@pytest.mark.parametrize("shape", [(7, 13, 33), (3, 1, 17)], ids=str)
def test_sums_along_axes(shape: tuple[int, ...], axes: list[int]) -> None:
    x = sample(2, shape, "float32")
    count = int(np.prod([shape[a] for a in axes]))
    exact = wide(x).sum(tuple(axes), keepdims=True)
    magnitude = abs(wide(x)).sum(tuple(axes), keepdims=True)
    got = run(total(axes, keepdims=True), x, order=backwards)
    check(got, exact, count, magnitude)


@pytest.mark.drawn
@TARGETS
@pytest.mark.parametrize("name", [*INTEGERS, "float32", "float64"])
def test_maxima(target: Any, name: str) -> None:
    x = sample(3, (5, 37), name, -99, 99)
    check(run(largest, x, target=target), x.max(1), 0)


@pytest.mark.parametrize("name", ["int8", "uint8", "int32", "int64"])
def test_integer_sums_wrap(name: str) -> None:
    x = sample(4, (3, 71), name, -99, 99)
    check(run(total([1]), x), x.sum(1, dtype=x.dtype), 0)


def test_products_and_minima() -> None:
    x = sample(5, (3, 21), "float32", 0.5, 1.5)
    product = run(
        lambda b, x: b.reduce(lambda a, s: a * s, x, [1], 1, keepdims=False), x
    )
    check(product, wide(x).prod(1), 21)
    least = run(lambda b, x: b.reduce(lambda a, s: a.minimum(s), x, [1], np.inf), x)
    check(least, wide(x).min(1, keepdims=True), 0)


@pytest.mark.parametrize("length", [1, 16, 17, 70])
def test_nan_and_infinity(length: int) -> None:
    """maximum passes NaN on, wherever it stands; -inf alone stays -inf."""
    x = np.full((length + 1, length), -np.inf, np.float32)
    x[np.arange(length), np.arange(length)] = np.nan
    got = run(largest, x)
    assert np.isnan(got[:-1]).all()
    assert got[-1] == -np.inf


def test_a_squared_sum() -> None:
    """What is folded is computed from the element first."""
    x = sample(6, (9, 45), "float32")
    got = run(
        lambda b, x: b.reduce(
            lambda a, s: a + s, x, [1], 0, keepdims=False, prepare=lambda s: s * s
        ),
        x,
    )
    check(got, (wide(x) ** 2).sum(1), 46)


def test_where_the_largest_is() -> None:
    """Two results at once: the largest element and its place (first of equals)."""
    x = sample(7, (6, 39), "int32", 0, 5)

    def make(b: Any, x: Any) -> Any:
        rows = Map.get(2, 0, [ir.AffineDimExpr.get(0)])
        best = b.full((6,), -1, x.dtype)
        place = b.full((6,), 0, np.dtype(np.int64))

        def body(s: Any, value: Any, at: Any) -> Any:
            better = s > value
            here = from_index(linalg.IndexOp(1).result)
            return [select(better, s, value), select(better, here, at)]

        return b.generic(
            [(x, Map.get_identity(2))], [(best, rows), (place, rows)],
            [PARALLEL, REDUCTION], body,
        )  # fmt: skip

    value, place = run(make, x)
    assert (value == x.max(1)).all()
    assert (place == x.argmax(1)).all()


# ---- rows through several loops ------------------------------------------------------


def softmax(b: Any, x: Any) -> Any:
    largest = b.reduce(lambda a, s: a.maximum(s), x, [-1], -np.inf)
    power = b.elementwise(lambda s, m: (s - m).math("exp"), x, largest)
    sums = b.reduce(lambda a, s: a + s, power, [-1], 0)
    return b.elementwise(lambda s, t: s / t, power, sums)


def exact_softmax(x: Array) -> Array:
    power = np.exp(wide(x) - wide(x).max(-1, keepdims=True))
    return power / power.sum(-1, keepdims=True)


def softmax_steps(x: Array) -> Array:
    """Roundings: exp of a rounded difference, a sum of all lengths, a division."""
    spread = wide(x).max(-1, keepdims=True) - wide(x)
    return (spread + 4 + x.shape[-1] + 1 + 4 + spread.max()) * exact_softmax(x)


@TARGETS
@few
@given(length=st.integers(1, 100))
@example(length=1)
@example(length=15)
@example(length=64)
@example(length=97)
def test_softmax(target: Any, length: int) -> None:
    x = sample(length, (2, 3, length), "float32")
    got = run(softmax, x, target=target, order=backwards)
    check(got, exact_softmax(x), 1, softmax_steps(x))


@pytest.mark.parametrize("shape", [(70, 33), (1, 1, 5, 31), (2, 2, 3, 2, 17)], ids=str)
def test_softmax_of_other_ranks(shape: tuple[int, ...]) -> None:
    x = sample(8, shape, "float32")
    check(run(softmax, x, order=backwards), exact_softmax(x), 1, softmax_steps(x))


def test_layer_normalization() -> None:
    x, scale = sample(9, (9, 41), "float32"), sample(10, (41,), "float32")

    def make(b: Any, x: Any) -> Any:
        mean = b.elementwise(lambda s: s / 41, total([1], keepdims=True)(b, x))
        centred = b.elementwise(lambda s, m: s - m, x, mean)
        square = b.elementwise(lambda s: s * s, centred)
        variance = total([1], keepdims=True)(b, square)
        return b.elementwise(
            lambda s, v, w: s / (v / 41 + 1e-5).math("sqrt") * w,
            centred, variance, b.constant(scale),
        )  # fmt: skip

    centred = wide(x) - wide(x).mean(1, keepdims=True)
    exact = centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5) * wide(scale)
    # The mean's error is one of the largest element; it moves every centred one.
    magnitude = abs(exact) + abs(x).max() * abs(scale)
    check(run(make, x, order=backwards), exact, 2 * 41 + 8, magnitude)


def test_softmax_along_another_axis() -> None:
    x = sample(11, (5, 7, 19), "float32")

    def make(b: Any, x: Any) -> Any:
        largest = b.reduce(lambda a, s: a.maximum(s), x, [1], -np.inf)
        power = b.elementwise(lambda s, m: (s - m).math("exp"), x, largest)
        sums = b.reduce(lambda a, s: a + s, power, [1], 0)
        return b.elementwise(lambda s, t: s / t, power, sums)

    turned = np.moveaxis(x, 1, -1)
    exact = np.moveaxis(exact_softmax(turned), -1, 1)
    steps = np.moveaxis(softmax_steps(turned), -1, 1)
    check(run(make, x, order=backwards), exact, 1, steps)


# ---- text ----------------------------------------------------------------------------


def test_softmax_is_one_loop_over_rows_with_temporaries_of_one_row() -> None:
    program = program_of(softmax, ((256, 300), "float32"))
    assert len(program.kernels) == 1
    text = stage_text(program, "vector", by_name("sapphirerapids"))
    checks = """
    CHECK-LABEL: func.func @kernel_0
    CHECK-DAG: memref.alloca() {{.*}}: memref<1x300xf32>
    CHECK: scf.for {{.*}} = %arg2 to %arg3 step
    CHECK: vector.shuffle {{.*}} : vector<16xf32>, vector<16xf32>
    CHECK: avx512.mask.range.ps.256
    CHECK: avx512.mask.scalef.ps.512
    CHECK: vector.reduction <add>
    CHECK: arith.divf {{.*}} : vector<16xf32>
    CHECK-NOT: func.func
    """
    check_text(text, checks)
    assert problems(text, checks.replace("<add>", "<mul>"))
    assert "memref.copy" not in text
    temporaries = re.findall(r"memref.alloc.*: memref<(.*)xf32>", text)
    assert set(temporaries) == {"1", "1x300"}
    # A masked vector would keep the single element from a register.
    assert not re.search(r"vector.maskedstore.*memref<1xf32>", text)


def test_long_rows_are_summed_in_four_chains() -> None:
    program = program_of(total([1]), ((3, 500), "float32"))
    text = stage_text(program, "vector", by_name("sapphirerapids"))
    check_text(
        text,
        """
    CHECK: :4 = scf.for {{.*}} to %c448 step %c64 iter_args(
    CHECK-COUNT-4: arith.addf {{.*}} : vector<16xf32>
    CHECK: scf.yield
    CHECK: vector.reduction <add>, {{.*}} fastmath<reassoc>
    CHECK: memref.store
    """,
    )


def test_columns_are_summed_in_vectors_of_results() -> None:
    """No lane is folded: three vectors run along the result, beside each other."""
    program = program_of(total([0]), ((70, 48), "float32"))
    text = stage_text(program, "vector", by_name("sapphirerapids"))
    check_text(
        text,
        """
    CHECK-NOT: vector.reduction
    CHECK: scf.for {{.*}} iter_args({{.*}}) -> (vector<16xf32>, {{.*}}, vector<16xf32>)
    CHECK: vector.store
    CHECK-NOT: vector.reduction
    """,
    )


def test_the_place_of_the_largest_is_a_reduction_of_vectors() -> None:
    """The smallest of the places where a number is the largest."""

    def place(b: Any, x: Any) -> Any:
        return positions(b, x, 1, largest=True, last=False)

    program = program_of(place, ((9, 300), "float32"))
    for name in ("riscv64+v", "x86-64-v4"):
        text = stage_text(program, "vector", by_name(name))
        assert "vector.reduction <minsi>" in text
