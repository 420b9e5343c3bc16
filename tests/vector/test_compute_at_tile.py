"""What follows a sum, computed on its register tile: stored once, from registers."""

from __future__ import annotations

import numpy as np
import pytest

from nanoloom.nest.extent import Lanes
from nanoloom.notation import Buffer, Computation, axes, computation, maximum, tanh
from nanoloom.schedule.language import (
    ALL,
    ComputeAt,
    Directive,
    InitWithAddend,
    Parallel,
    ReuseWindow,
    Schedule,
    Unroll,
    UnrollAndJam,
    Vectorize,
)
from nanoloom.target import Target, by_name
from tests.filecheck import check_text
from tests.linalg.bounds import sample, wide
from tests.notation.programs import kernels
from tests.vector.checks import check
from tests.vector.kernel_harness import backwards, executable, stage_text, targets

TARGETS = pytest.mark.parametrize("target", targets(), ids=str)


def biased(m: int, k: int, n: int) -> Computation:
    """bias + a @ b, and what is positive of it."""
    i, j, r = axes("i j r")
    a, b, bias = Buffer("a", (m, k)), Buffer("b", (k, n)), Buffer("bias", (n,))
    c, y = Buffer("c", (m, n)), Buffer("y")
    c[i, j] = bias[j]
    c[i, j] += a[i, r] * b[r, j]
    y[i, j] = maximum(c[i, j], 0)
    return computation(y)


def at_tile(target: Target, *stages: tuple[str, str, str]) -> tuple[Directive, ...]:
    """Tiles of 3 x 2 vectors, the last stage first; others computed at its."""
    lanes, (last, _, column) = Lanes(target.lanes(32)), stages[0]
    words: list[Directive] = []
    for number, (stage, row, own) in enumerate(stages):
        words += [ComputeAt(stage, last, column)] if number else []
        words += [Vectorize(stage, own, lanes)]
        words += [UnrollAndJam(stage, row, 3), UnrollAndJam(stage, own, 2)]
    return tuple(words)


BIASED = ("y", "i", "j"), ("c_2", "i", "j"), ("c", "i", "j"), ("fill", "d0", "d1")


def test_sums_go_from_registers_to_registers() -> None:
    """One vector of bias for a column's three rows; nothing but the results is
    written."""
    target = by_name("x86-64-v3")
    words = (*at_tile(target, *BIASED), InitWithAddend("c"))
    program = kernels(biased(6, 5, 16))
    check_text(
        stage_text(program, "vector", target, script=Schedule(words)),
        """
    CHECK-NOT: vector.store
    CHECK: scf.for {{.*}} to %c6 step %c3
    CHECK-NOT: vector.store
    CHECK: vector.load %arg2
    CHECK: vector.load %arg2
    CHECK-NOT: vector.load
    CHECK: scf.for {{.*}} to %c5 step %c1 iter_args
    CHECK-COUNT-6: vector.fma
    CHECK: scf.yield
    CHECK-COUNT-6: vector.store {{.*}}, %arg3
    CHECK-NOT: vector.store
    """,
    )


def test_a_task_keeps_nothing_in_memory() -> None:
    """Zeros, sums and bias have one buffer in turn: who came before needs no number."""
    target = by_name("x86-64-v3")
    tile = at_tile(target, *BIASED)
    words = (Parallel("y", (6, 0), ALL), *tile, InitWithAddend("c"))
    text = stage_text(
        kernels(biased(25, 5, 16)), "vector", target, script=Schedule(words)
    )
    check_text(
        text,
        """
    CHECK: func.func @kernel_0({{.*}} %arg{{[0-9]+}}: index) {
    CHECK-NOT: memref.alloc
    CHECK: scf.for {{.*}} iter_args
    """,
    )
    assert text.count("vector.store") == text.count("arith.maximumf") > 0
    assert "arith.addf" not in text  # the bias is what sums begin with


def test_the_script_says_which_stages() -> None:
    (kernel,) = kernels(biased(6, 5, 16)).kernels.values()
    words = at_tile(by_name("x86-64-v3"), *BIASED)
    check_text(
        Schedule(words).to_transform(kernel.nest),
        """
    CHECK-NOT: tile_sizes
    CHECK: "nanoloom.at_tile"(%fill
    CHECK: "nanoloom.unroll_and_jam"(%c_{{[0-9]*}}) {axis = 1 : i64, count = 2
    CHECK-NEXT: [[SUM:%.*]] = {{.*}}match attributes {nanoloom.stage = "c"}
    CHECK-NEXT: "nanoloom.at_tile"([[SUM]])
    CHECK: "nanoloom.at_tile"(%c_2
    CHECK: "nanoloom.vectorize"(%y
    CHECK-NOT: "nanoloom.at_tile"(%y
    """,
    )


@pytest.mark.drawn
@TARGETS
@pytest.mark.parametrize("sizes", [(7, 5, 33), (6, 8, 64), (5, 9, 47), (2, 3, 5)])
@pytest.mark.parametrize("rows", [0, 4], ids=["whole", "tasks"])
def test_numbers(target: Target, sizes: tuple[int, int, int], rows: int) -> None:
    m, k, n = sizes
    a, b = sample(1, (m, k), "float32"), sample(2, (k, n), "float32")
    bias, made = sample(3, (n,), "float32"), biased(m, k, n)
    share = (Parallel("y", (rows, 0), ALL),) if rows else ()
    words = Schedule((*share, *at_tile(target, *BIASED)))
    arrays = {"a": a, "b": b, "bias": bias}
    given = [arrays[buffer.name] for buffer in made.inputs]
    (kernel,) = kernels(made).kernels.values()
    text = words.to_transform(kernel.nest)
    (got,) = executable(kernels(made), target, text)(*given, order=backwards)
    exact = np.maximum(wide(a) @ wide(b) + wide(bias), 0)
    check(got, exact, k + 2, abs(wide(a)) @ abs(wide(b)) + abs(wide(bias)))


def gated(m: int, k: int, n: int) -> Computation:
    """What two stages read, and a sum that is a result beside what is made of it."""
    i, j, r = axes("i j r")
    a, b = Buffer("a", (m, k)), Buffer("b", (k, n))
    c, gate, y = Buffer("c", (m, n)), Buffer("gate", (m, n)), Buffer("y")
    c[i, j] += a[i, r] * b[r, j]
    gate[i, j] = tanh(c[i, j])
    y[i, j] = gate[i, j] * c[i, j]
    return computation(y)


@TARGETS
def test_a_sum_that_two_stages_read_is_computed_once(target: Target) -> None:
    m, k, n = 5, 9, 47
    a, b = sample(1, (m, k), "float32"), sample(2, (k, n), "float32")
    stages = (
        ("y", "i", "j"), ("gate", "i", "j"), ("c", "i", "j"), ("fill", "d0", "d1")
    )  # fmt: skip
    program, words = kernels(gated(m, k, n)), Schedule(at_tile(target, *stages))
    (kernel,) = program.kernels.values()
    text = words.to_transform(kernel.nest)
    (got,) = executable(program, target, text)(a, b, order=backwards)
    sums, size = wide(a) @ wide(b), abs(wide(a)) @ abs(wide(b))
    check(got, np.tanh(sums) * sums, k + 8, size * (1 + abs(sums)))
    small = kernels(gated(3, 2, 2 * target.lanes(32)))
    vectors = stage_text(small, "vector", target, script=words)
    assert vectors.count("vector.store") == 6
    assert vectors.count("scf.for") == 1  # of the sum: three rows are one tile


def test_neighbours_share_what_is_read() -> None:
    """Two rows of two pixels, a window of 2 x 2: 9 numbers are read once each, and
    every sum is in order."""
    y, x, c, u, v = axes("y x c u v")
    image, weights = Buffer("image", (3, 3, 8)), Buffer("weights", (2, 2, 8))
    made = Buffer("made", (2, 2, 8))
    made[y, x, c] += weights[u, v, c] * image[y + u, x + v, c]
    target = by_name("x86-64-v3")
    words = (
        Vectorize("made", "c", Lanes(8)),
        UnrollAndJam("made", "y", 2),
        UnrollAndJam("made", "x", 2),
        Unroll("made", "u"),
        Unroll("made", "v"),
        ReuseWindow("made"),
    )
    program = kernels(computation(made))
    text = stage_text(program, "vector", target, script=Schedule(words))
    assert text.count("vector.load") == 9 + 4
    check_text(
        text,
        """
    CHECK: vector.load %arg0[%c0, %c0, %c0]
    CHECK-NEXT: vector.load %arg1[%c0, %c0, %c0]
    CHECK-NEXT: vector.fma
    CHECK-NEXT: vector.load %arg1[%c0, %c1, %c0]
    CHECK-NEXT: vector.fma
    CHECK-NEXT: vector.load %arg0[%c0, %c1, %c0]
    CHECK-NEXT: vector.fma
    CHECK-NEXT: vector.load %arg1[%c0, %c2, %c0]
    CHECK-NEXT: vector.fma
    CHECK-NEXT: vector.load %arg1[%c1, %c0, %c0]
    """,
    )
