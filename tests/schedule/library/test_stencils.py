"""Stencils: several tasks, planes that share what they read, and the numbers."""

from __future__ import annotations

import numpy as np
import pytest

from nanoloom.notation import Buffer, Computation, axes, computation, maximum, tanh
from nanoloom.schedule.choose import choose
from nanoloom.schedule.language import ComputeAt, Parallel, UnrollAndJam
from nanoloom.schedule.library.stencils import task_sizes
from nanoloom.target import Target, by_name
from tests.linalg.bounds import sample, wide
from tests.notation.programs import kernels
from tests.vector.assembly import count, inner_loops
from tests.vector.checks import check
from tests.vector.kernel_harness import backwards, executable, stage_text, targets

AVX2 = by_name("x86-64-v3")


def seven_points(*shape: int, bent: bool = True) -> Computation:
    i, j, k = axes("i j k")
    a, b = Buffer("a", shape), Buffer("b")
    around = a[i, j + 1, k + 1] + a[i + 2, j + 1, k + 1]
    around = around + a[i + 1, j, k + 1] + a[i + 1, j + 2, k + 1]
    around = around + a[i + 1, j + 1, k] + a[i + 1, j + 1, k + 2]
    sum_ = around - 6 * a[i + 1, j + 1, k + 1]
    b[i, j, k] = tanh(sum_) if bent else sum_
    return computation(b)


def positive(*shape: int) -> Computation:
    """What is positive of seven points, in a statement of its own."""
    i, j, k = axes("i j k")
    a = Buffer("a", shape)
    b, r = Buffer("b", (shape[0] - 2, shape[1] - 2, shape[2] - 2)), Buffer("r")
    around = a[i, j + 1, k + 1] + a[i + 2, j + 1, k + 1]
    around = around + a[i + 1, j, k + 1] + a[i + 1, j + 2, k + 1]
    around = around + a[i + 1, j + 1, k] + a[i + 1, j + 1, k + 2]
    b[i, j, k] = around - 6 * a[i + 1, j + 1, k + 1]
    r[i, j, k] = maximum(b[i, j, k], 0)
    return computation(r)


def words_of(made: Computation) -> tuple[object, ...]:
    (kernel,) = kernels(made).kernels.values()
    return choose(kernel.nest, AVX2).directives


def test_a_small_grid_is_several_tasks() -> None:
    words = words_of(seven_points(13, 21, 37))
    (tasks,) = [word for word in words if isinstance(word, Parallel)]
    assert -(-11 // tasks.sizes[0]) * -(-19 // tasks.sizes[1]) >= 3
    assert UnrollAndJam("b", "i", 4) in words


@pytest.mark.parametrize(
    ("sizes", "blocks"),
    [
        ([11, 19, 35], (4, 19, 0)),
        ([256, 256, 256], (16, 32, 0)),
        ([128, 128, 128], (16, 32, 0)),
        ([500, 40], (204, 0)),
        ([5, 7, 9], (4, 7, 0)),
    ],
)
def test_blocks(sizes: list[int], blocks: tuple[int, ...]) -> None:
    assert task_sizes(sizes, 0, 4) == blocks


def test_planes_share_what_they_read() -> None:
    """Of the seven places of four planes, 28, six are read by two of them."""
    text = stage_text(kernels(seven_points(10, 12, 18, bent=False)), "asm", AVX2)
    loop = max(inner_loops(text), key=lambda lines: count(lines, "vmovups"))
    stores = [line for line in loop if line.endswith(")")]
    read = [line for line in loop if "(" in line and line not in stores]
    steps = len(stores) // 4
    assert steps and len(stores) % 4 == 0
    assert len(read) <= steps * (28 - 6) + 1  # and what the middle is multiplied by


@pytest.mark.drawn
@pytest.mark.parametrize("target", targets(), ids=str)
@pytest.mark.parametrize("shape", [(13, 21, 37), (3, 9, 18), (8, 50, 131)], ids=str)
def test_numbers(target: Target, shape: tuple[int, int, int]) -> None:
    x = sample(1, shape, "float32")
    (got,) = executable(kernels(seven_points(*shape, bent=False)), target)(
        x, order=backwards
    )
    a = wide(x)
    parts = [
        a[:-2, 1:-1, 1:-1], a[2:, 1:-1, 1:-1], a[1:-1, :-2, 1:-1],
        a[1:-1, 2:, 1:-1], a[1:-1, 1:-1, :-2], a[1:-1, 1:-1, 2:],
        -6 * a[1:-1, 1:-1, 1:-1],
    ]  # fmt: skip
    check(got, np.sum(parts, 0), 8, np.sum(np.abs(parts), 0))


def test_what_follows_is_computed_on_the_same_planes() -> None:
    """Four planes' results are written once, from registers."""
    words = words_of(positive(10, 12, 18))
    assert {UnrollAndJam("b", "i", 4), UnrollAndJam("r", "i", 4)} <= set(words)
    assert ComputeAt("b", "r", "k") in words
    text = stage_text(kernels(positive(10, 12, 18)), "vector", AVX2)
    assert "memref.alloc" not in text
    assert text.count("vector.store") == 4  # in a loop over the row's two vectors


@pytest.mark.drawn
@pytest.mark.parametrize("target", targets(), ids=str)
@pytest.mark.parametrize("shape", [(13, 21, 37), (3, 9, 18), (8, 50, 131)], ids=str)
def test_numbers_of_what_follows(target: Target, shape: tuple[int, int, int]) -> None:
    x = sample(1, shape, "float32")
    program = kernels(positive(*shape))
    (got,) = executable(program, target)(x, order=backwards)
    a = wide(x)
    parts = [
        a[:-2, 1:-1, 1:-1], a[2:, 1:-1, 1:-1], a[1:-1, :-2, 1:-1],
        a[1:-1, 2:, 1:-1], a[1:-1, 1:-1, :-2], a[1:-1, 1:-1, 2:],
        -6 * a[1:-1, 1:-1, 1:-1],
    ]  # fmt: skip
    check(got, np.maximum(np.sum(parts, 0), 0), 8, np.sum(np.abs(parts), 0))


def test_what_reads_no_neighbours_is_no_stencil() -> None:
    i, j = axes("i j")
    a, b, c = Buffer("a", (40, 50)), Buffer("b", (40, 50)), Buffer("c")
    c[i, j] = a[i, j] * b[i, j] + a[i, j]
    assert not [w for w in words_of(computation(c)) if isinstance(w, UnrollAndJam)]
