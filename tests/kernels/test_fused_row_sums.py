"""Averages of all pixels of a product: in its kernel, where a cache holds the image."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest

from nanoloom.kernels.program import Program
from nanoloom.target import Target, by_name
from tests.linalg.bounds import sample
from tests.vector.checks import check, passes
from tests.vector.kernel_harness import (
    Array,
    Make,
    at_once,
    backwards,
    executable,
    program_of,
    stage_text,
    targets,
)

TARGETS = pytest.mark.parametrize("target", targets(), ids=str)
# images, height, width, channels, filters
FEW = [(1, 7, 7, 33, 70), (3, 6, 5, 16, 40), (2, 1, 9, 8, 17), (1, 16, 16, 5, 64)]
MANY = [(1, 65, 64, 5, 9)]  # pixels: a panel of them does not stay in the cache
EQUATION = "nhwc,cf->nhwf"


def arrays(case: tuple[int, ...]) -> tuple[Array, Array, Array]:
    """x [n, h, w, c], weights [c, f] and a bias [f]."""
    n, high, wide, channels, made = case
    shapes = (n, high, wide, channels), (channels, made), (made,)
    x, w, bias = (sample(i, shape, "float32") for i, shape in enumerate(shapes))
    return x, w, bias


def average(case: tuple[int, ...], **words: bool) -> tuple[Make, Array]:
    """A layer of 1x1 filters with bias and ReLU, its average, and what it reads.

    given: the weights are an input.  twice: the layer is a result, too.
    """
    x, w, bias = arrays(case)
    pixels = case[1] * case[2]

    def make(b: Any, image: Any, *weights: Any) -> Any:
        (right,) = weights or (b.constant(w),)
        made = b.einsum(EQUATION, image, right)
        made = b.elementwise(lambda s, t: (s + t).maximum(0), made, b.constant(bias))
        total = b.reduce(lambda s, t: s + t, made, (1, 2), 0)
        y = b.elementwise(lambda s: s / pixels, total)
        return [made, y] if words.get("twice") else y

    return make, x


def kernels(program: Program) -> list[str]:
    return [name.split("_")[0] for name in program.kernels]


@pytest.mark.parametrize("case", FEW, ids=str)
def test_an_average_is_no_kernel(case: tuple[int, ...]) -> None:
    assert kernels(program_of(*average(case))) == ["contraction"]


@pytest.mark.parametrize("case", MANY, ids=str)
def test_one_of_many_pixels_is(case: tuple[int, ...]) -> None:
    assert kernels(program_of(*average(case))) == ["contraction", "reduction"]


def test_what_others_read_too_is_in_memory() -> None:
    assert len(kernels(program_of(*average(FEW[0], twice=True)))) > 1


def test_weights_that_are_computed_are_not_packed() -> None:
    make, x = average(FEW[0])
    program = program_of(make, x, arrays(FEW[0])[1])
    assert kernels(program) == ["contraction", "reduction"]


def test_tasks_are_panels_of_register_tiles() -> None:
    """The image is no buffer of the kernel's: a task has its columns of it."""
    program = program_of(*average(FEW[0]))
    text = stage_text(program, "schedule", by_name("x86-64-v4"))
    assert "read in the cache" in text
    assert "nanokernel" in text


@pytest.mark.drawn
@TARGETS
@pytest.mark.parametrize("case", [*FEW, *MANY], ids=str)
def test_numbers(case: tuple[int, ...], target: Target) -> None:
    """Tasks in any order give the same bits; without a pixel the check fails."""
    make, x = average(case)
    program = executable(program_of(make, x), target)
    (got,), (again,) = program(x, order=at_once), program(x, order=backwards)
    assert np.array_equal(got, again)
    _, w, bias = arrays(case)
    one, other = x.astype(np.float64), w.astype(np.float64)
    image = np.maximum(np.einsum(EQUATION, one, other) + bias, 0)
    size = np.einsum(EQUATION, abs(one), abs(other)) + abs(bias)
    steps = x.shape[-1] + case[1] * case[2] + 3
    got = got[:, 0, 0]
    check(got, image.mean((1, 2)), steps, size.mean((1, 2)))
    image[:, -1, -1] = 0
    assert not passes(got, image.mean((1, 2)), steps, size.mean((1, 2)))


# rows of a product, seen as [.., f]; the axes of that which are one number each
ROWS = [
    *[((6, 2), (1,)), ((3, 2, 2), (1, 2)), ((6, 2), (0,)), ((2, 3, 2), (0, 2))],
    *[((1, 6, 2), (1, 2)), ((5, 1), (1,)), ((4, 3), (0, 1))],
]


def drawn_rows(seed: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Some axes of rows, and some of them."""
    rng = np.random.default_rng(seed)
    sizes = [int(n) for n in rng.integers(1, 7, rng.integers(2, 5))]
    axes = [d for d in range(len(sizes)) if rng.random() < 0.5]
    return tuple(sizes), tuple(axes or [len(sizes) - 1])


def rows_added(
    sizes: tuple[int, ...], axes: tuple[int, ...], *, batches: bool, ends: bool
) -> tuple[Make, Array, Array]:
    """ReLU of a product whose rows are seen as more axes, some of which add up.

    batches: each row has weights of its own.  ends: nothing follows the sums.
    """
    count, depth, columns = prod(sizes), 13, 37
    x = sample(0, (count, 1, depth) if batches else (count, depth), "float32")
    w = sample(1, (count, depth, columns) if batches else (depth, columns), "float32")
    equation = "bmk,bkn->bmn" if batches else "mk,kn->mn"

    def make(b: Any, left: Any) -> Any:
        made = b.einsum(equation, left, b.constant(w))
        made = b.elementwise(lambda s: s.maximum(0), made)
        seen = b.reshape(made, (*sizes, columns))
        total = b.reduce(lambda s, t: s + t, seen, axes, 0, keepdims=False)
        return total if ends else b.elementwise(lambda s: s * 0.5, total)

    return make, x, w


@pytest.mark.drawn
@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize("batches", [False, True])
@pytest.mark.parametrize(
    ("sizes", "axes"), [*ROWS, *(drawn_rows(seed) for seed in range(12))], ids=str
)
def test_rows_seen_as_more_axes(
    sizes: tuple[int, ...], axes: tuple[int, ...], *, batches: bool, ends: bool
) -> None:
    """As the weighted sum of a mixture of experts reads what these make."""
    make, x, w = rows_added(sizes, axes, batches=batches, ends=ends)
    (got,) = executable(program_of(make, x), by_name("x86-64-v3"))(x)
    one, other = x.astype(np.float64), w.astype(np.float64)
    factor, shape = 1 if ends else 0.5, (*sizes, w.shape[-1])
    made = np.maximum(one @ other, 0).reshape(shape)
    size = (abs(one) @ abs(other)).reshape(shape)
    steps = x.shape[-1] + prod(sizes) + 2
    check(got, made.sum(axes) * factor, steps, size.sum(axes) * factor)
    made[(-1,) * len(sizes)] = 0
    assert not passes(got, made.sum(axes) * factor, steps, size.sum(axes) * factor)


@pytest.mark.parametrize(("sizes", "axes"), ROWS[:2], ids=str)
def test_rows_side_by_side_are_added_in_the_cache(
    sizes: tuple[int, ...], axes: tuple[int, ...]
) -> None:
    for ends in (False, True):
        make, x, _ = rows_added(sizes, axes, batches=False, ends=ends)
        program = program_of(make, x)
        assert kernels(program) == ["contraction"]
        text = stage_text(program, "schedule", by_name("x86-64-v4"))
        assert "read in the cache" in text


@pytest.mark.parametrize(("sizes", "axes"), ROWS[2:4], ids=str)
def test_rows_apart_are_added_behind(
    sizes: tuple[int, ...], axes: tuple[int, ...]
) -> None:
    """A task would compute what lies between them as well."""
    make, x, _ = rows_added(sizes, axes, batches=False, ends=True)
    assert kernels(program_of(make, x)) == ["contraction", "reduction"]
