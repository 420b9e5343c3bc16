"""Axes over a multiple of points: no mask, and only what there is comes back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nanoloom.errors import Error
from nanoloom.nest.extent import Lanes
from nanoloom.nest.printer import print_nest
from nanoloom.notation import (
    Buffer,
    Computation,
    axes,
    computation,
    exp,
    maximum,
    minimum,
)
from nanoloom.schedule.language import (
    ALL,
    Directive,
    Hoist,
    Nanokernel,
    Pad,
    Parallel,
    Schedule,
    Split,
    Tile,
    Unroll,
    UnrollAndJam,
    Vectorize,
)
from nanoloom.target import Target, by_name
from tests.filecheck import check_text
from tests.linalg.bounds import sample, wide
from tests.notation.programs import kernels
from tests.vector.checks import check
from tests.vector.kernel_harness import (
    Side,
    backwards,
    executable,
    stage_text,
    targets,
)

TARGETS = pytest.mark.parametrize("target", targets(), ids=str)
AVX2 = by_name("x86-64-v3")
LANES = Lanes(8)


def product(m: int, k: int, n: int, kind: str = "float32") -> Computation:
    i, j, r = axes("i j r")
    a, b = Buffer("a", (m, k), kind), Buffer("b", (k, n), kind)
    c = Buffer("c", (m, n), kind)
    c[i, j] += a[i, r] * b[r, j]
    return computation(c)


def shortest(m: int, k: int, n: int) -> Computation:
    i, j, r = axes("i j r")
    a, b, c = Buffer("a", (m, k)), Buffer("b", (k, n)), Buffer("c", (m, n))
    c[i, j] = minimum(c[i, j], a[i, r] + b[r, j])
    return computation(c)


def largest(m: int, n: int, kind: str) -> Computation:
    i, j = axes("i j")
    x, y = Buffer("x", (m, n), kind), Buffer("y", (m,), kind)
    y[i] = maximum(y[i], x[i, j])
    return computation(y)


def run(made: Computation, target: Target, words: Any, *arrays: Any) -> Any:
    """The only output, at the ends of memory that there is; tasks in any order."""
    program = kernels(made)
    (kernel,) = program.kernels.values()
    text = Schedule(tuple(words)).to_transform(kernel.nest)
    compiled = executable(program, target, text)
    results = [
        compiled(*arrays, order=backwards, side=side)[0]
        for side in (Side.END, Side.START)
    ]
    assert results[0].tobytes() == results[1].tobytes()
    return results[0]


def tile(rows: int, *more: Directive) -> tuple[Directive, ...]:
    return (
        Parallel("c", (rows, 32, 0), ALL), *more, Vectorize("c", "j", LANES),
        UnrollAndJam("c", "i", 3), UnrollAndJam("c", "j", 2),
    )  # fmt: skip


BOTH = Pad("c", "j", 16, LANES), Pad("c", "i", 3, LANES)


def test_the_loops_have_a_multiple_of_points() -> None:
    (kernel,) = kernels(product(7, 9, 70)).kernels.values()
    text = print_nest(Schedule((Pad("c", "j", 16),)).apply(kernel.nest))
    assert "for j in 0..80 (padded to 16s):" in text
    assert text.splitlines()[-1].endswith("arg1[r, j], with a copy of arg1")


def test_the_script_says_what_rows_are_filled_up_with() -> None:
    (kernel,) = kernels(shortest(7, 9, 70)).kernels.values()
    words = Pad("c", "j", 16, LANES), Pad("c", "r", 4)
    check_text(
        Schedule(words).to_transform(kernel.nest),
        """
    CHECK: "nanoloom.copy_operand"({{.*}}, %lanes1) {operand = 0 : i64
    CHECK: "nanoloom.copy_operand"({{.*}}, %lanes8) {operand = 1 : i64
    CHECK: "nanoloom.pad"({{.*}}, %lanes8) {axis = 1 : i64, to = 16 : i64,
    CHECK-SAME: number = "zero", scalable = 0 : i64}
    CHECK: "nanoloom.pad"({{.*}}, %lanes1) {axis = 2 : i64, to = 4 : i64,
    CHECK-SAME: number = "highest", scalable = 0 : i64}
    """,
    )


def test_no_mask_and_no_smaller_tile_in_front_of_the_sums() -> None:
    """One loop of sums, with all six vectors of the tile: the last one's, too."""
    program = kernels(product(7, 9, 70))
    text = stage_text(program, "vector", AVX2, script=Schedule(tile(3, *BOTH)))
    assert text.count("iter_args") == 1
    check_text(
        text,
        """
    CHECK: scf.for {{.*}} to %c9 step %c1 iter_args
    CHECK-NOT: masked
    CHECK-COUNT-6: vector.fma
    CHECK: scf.yield
    CHECK-COUNT-6: vector.store
    CHECK: scf.for
    """,
    )
    plain = stage_text(program, "vector", AVX2, script=Schedule(tile(3)))
    assert plain.count("iter_args") > 1


@pytest.mark.drawn
@TARGETS
@pytest.mark.parametrize("sizes", [(7, 9, 70), (2, 5, 3), (8, 6, 33)], ids=str)
@pytest.mark.parametrize(
    "more", [BOTH, BOTH[:1], BOTH[1:], (*BOTH, Pad("c", "r", 4))], ids=str
)
def test_products(target: Target, sizes: tuple[int, int, int], more: Any) -> None:
    m, k, n = sizes
    a, b = sample(1, (m, k), "float32"), sample(2, (k, n), "float32")
    rows = 3 if m > 3 else 0
    columns = 32 if n > 32 else 0
    words = (Parallel("c", (rows, columns, 0), ALL), *tile(3, *more)[1:])
    got = run(product(m, k, n), target, words, a, b)
    check(got, wide(a) @ wide(b), k + 5, abs(wide(a)) @ abs(wide(b)))


@TARGETS
def test_what_is_padded_is_copied_once_for_all_rows(target: Target) -> None:
    a, b = sample(1, (7, 9), "float32"), sample(2, (9, 70), "float32")
    words = (
        Parallel("c", (0, 32, 0), ALL), Tile("c", (3, 0, 0)), *BOTH,
        Hoist("c", 1, "io"), *tile(3)[1:],
    )  # fmt: skip
    got = run(product(7, 9, 70), target, words, a, b)
    check(got, wide(a) @ wide(b), 10, abs(wide(a)) @ abs(wide(b)))


@TARGETS
def test_results_that_lie_in_a_task_and_are_as_large_as_it(target: Target) -> None:
    """Of neither axis of the product's own buffer the extent is known."""
    i, j, r = axes("i j r")
    a, b, c = Buffer("a", (11, 4)), Buffer("b", (4, 46)), Buffer("c", (11, 46))
    y = Buffer("y")
    c[i, j] += a[i, r] * b[r, j]
    y[i, j] = maximum(c[i, j], 0)
    words = (
        Parallel("y", (3, 32), ALL), Pad("c", "j", 16), Vectorize("c", "j", LANES),
        Vectorize("y", "j", LANES),
    )  # fmt: skip
    one, other = sample(1, (11, 4), "float32"), sample(2, (4, 46), "float32")
    got = run(computation(y), target, words, one, other)
    size = abs(wide(one)) @ abs(wide(other))
    check(got, (wide(one) @ wide(other)).clip(0), 5, size)


@TARGETS
def test_the_smallest_of_sums(target: Target) -> None:
    """Behind the end of a sum is what is never the smallest."""
    a, b = sample(1, (5, 7), "float32"), sample(2, (7, 37), "float32")
    words = tile(0, Pad("c", "r", 4), Pad("c", "j", 16))
    got = run(shortest(5, 7, 37), target, words, 9 + abs(a), abs(b))
    one, other = wide(9 + abs(a)), wide(abs(b))
    exact = (one[:, :, None] + other[None]).min(1)
    check(got, exact, 1)


@pytest.mark.parametrize("kind", ["int32", "uint32", "int8", "float32"])
def test_the_largest_of_negative_numbers(kind: str) -> None:
    low, high = (-100, -1) if kind != "uint32" else (0, 100)
    x = np.random.default_rng(1).integers(low, high, (5, 37)).astype(kind)
    words = Pad("y", "j", 32), Vectorize("y", "j", Lanes(8), 2)
    got = run(largest(5, 37, kind), targets()[0], words, x)
    check(got, x.max(1), 0)


@TARGETS
def test_neighbours_of_points_behind_the_end(target: Target) -> None:
    i, j = axes("i j")
    x, y = Buffer("x", (5, 41)), Buffer("y", (5, 39))
    y[i, j] = exp(x[i, j]) + x[i, j + 1] * x[i, j + 2]
    array = sample(3, (5, 41), "float32")
    words = Parallel("y", (2, 0)), Pad("y", "j", 16), Vectorize("y", "j", LANES)
    got = run(computation(y), target, words, array)
    whole = wide(array)
    more = whole[:, 1:-1] * whole[:, 2:]
    exact = np.exp(whole[:, :-2]) + more
    check(got, exact, 8, np.exp(whole[:, :-2]) + abs(more))


def test_integers_are_exact() -> None:
    a, b = sample(1, (5, 7), "int32"), sample(2, (7, 37), "int32")
    words = tile(0, *BOTH, Pad("c", "r", 4))
    got = run(product(5, 7, 37, "int32"), targets()[0], words, a, b)
    assert (got == a @ b).all() and got.any()


def test_sums_that_start_from_an_array_read_what_there_is() -> None:
    i, j, r = axes("i j r")
    a, b, bias = Buffer("a", (5, 7)), Buffer("b", (7, 37)), Buffer("bias", (37,))
    c = Buffer("c", (5, 37))
    c[i, j] = bias[j]
    c[i, j] += a[i, r] * b[r, j]
    made = computation(c)
    arrays = {
        "a": sample(1, (5, 7), "float32"),
        "b": sample(2, (7, 37), "float32"),
        "bias": sample(3, (37,), "float32"),
    }
    given = [arrays[buffer.name] for buffer in made.inputs]
    (kernel,) = kernels(made).kernels.values()
    (stage,) = [s.name for s in kernel.nest.stages if s.is_reduction]
    words = (
        Pad(stage, "j", 16),
        Pad(stage, "i", 3),
        Vectorize(stage, "j", LANES),
        UnrollAndJam(stage, "i", 3),
    )
    left, right, line = map(wide, arrays.values())
    got = run(made, targets()[0], words, *given)
    check(got, line + left @ right, 9, abs(line) + abs(left) @ abs(right))


def nest_of(made: Computation) -> Any:
    (kernel,) = kernels(made).kernels.values()
    return kernel.nest


def window() -> Computation:
    i, r = axes("i r")
    x, w, y = Buffer("x", (11,)), Buffer("w", (3,)), Buffer("y", (9,))
    y[i] += x[i + r] * w[r]
    return computation(y)


def scaled() -> Computation:
    i, r = axes("i r")
    x, w, y = Buffer("x", (11,)), Buffer("w", (9,)), Buffer("y", (9,))
    y[i] += x[r] * w[i]
    return computation(y)


C = product(7, 9, 70)
REFUSED: list[tuple[Computation, tuple[Directive, ...], str]] = [
    (C, (Pad("c", "j", 1),), "to is 1: a number from 2 on is wanted"),
    (C, (Pad("c", "j", 4097),), "to is 4097: at most 4096 is wanted"),
    (C, (Pad("c", "k", 8),), "c has no axis k; it has i, j, r"),
    (C, (Pad("c", "j", 7),), "70 points are a multiple of 7 already"),
    (C, (Vectorize("c", "j", LANES), Pad("c", "j", 8)), "scheduled already: pad first"),
    (C, (Unroll("c", "i"), Pad("c", "i", 8)), "scheduled already: pad first"),
    (C, (Pad("c", "j", 8), Pad("c", "j", 16)), "j is padded already"),
    (C, (Pad("c", "j", 8), Tile("c", (0, 32, 0))), "j is padded already"),
    (C, (Pad("c", "j", 8), Split("c", "j", "jo", "ji", 32)), "j is padded already"),
    (
        C,
        (Nanokernel(3, 2, Lanes(8), False, stage="c"), Pad("c", "j", 8)),
        "c is a nanokernel, which has its own edges",
    ),
    (window(), (Pad("y", "r", 2),), "r is read together with other axes"),
    (scaled(), (Pad("y", "r", 4),), "r is read together with other axes"),
]


@pytest.mark.parametrize(("made", "words", "said"), REFUSED)
def test_what_is_refused(
    made: Computation, words: tuple[Directive, ...], said: str
) -> None:
    with pytest.raises(Error) as found:
        Schedule(words).apply(nest_of(made))
    assert str(found.value).startswith(str(words[-1]))
    assert said in str(found.value)


def test_an_edited_script_may_not_read_behind_the_end() -> None:
    program = kernels(product(7, 9, 70))
    text = Schedule(tile(3, *BOTH)).to_transform(nest_of(product(7, 9, 70)))
    lines = [x for x in text.splitlines() if '"nanoloom.copy_operand"' not in x]
    with pytest.raises(Error, match="operand 0 is not copied"):
        stage_text(program, "vector", AVX2, script="\n".join(lines))
    wrong = text.replace('number = "zero"', 'number = "two"')
    with pytest.raises(Error, match="number = two: one of zero, one, ones, highest"):
        stage_text(program, "vector", AVX2, script=wrong)
