"""Elementwise stages: one loop, what is between them in registers, and the numbers."""

from __future__ import annotations

import numpy as np
import pytest

from nanoloom.notation import Buffer, Computation, axes, cast, computation, exp, maximum
from nanoloom.schedule.choose import choose
from nanoloom.schedule.language import ComputeAt, Parallel, Tile
from nanoloom.target import Target, by_name
from tests.linalg.bounds import sample, wide
from tests.notation.programs import kernels
from tests.vector.checks import check
from tests.vector.kernel_harness import backwards, executable, stage_text, targets

AVX2 = by_name("x86-64-v3")
SHAPES = [(5, 7, 19), (13, 21, 64), (3, 4, 130)]


def normalized(
    rows: int, pixels: int, channels: int, bent: bool = False
) -> Computation:
    """A normalization of channels and what is positive of it, in two statements."""
    i, j, c = axes("i j c")
    shape = (rows, pixels, channels)
    x, mean, scale = Buffer("x", shape), Buffer("m", shape[2:]), Buffer("s", shape[2:])
    t, y = Buffer("t", shape), Buffer("y")
    moved = x[i, j, c] - mean[c]
    t[i, j, c] = (exp(moved) if bent else moved) * scale[c]
    y[i, j, c] = maximum(t[i, j, c], 0)
    return computation(y)


def words_of(made: Computation) -> tuple[object, ...]:
    (kernel,) = kernels(made).kernels.values()
    return choose(kernel.nest, AVX2).directives


def test_one_loop_stores_once() -> None:
    words = words_of(normalized(13, 21, 64))
    assert ComputeAt("t", "y", "c") in words
    assert [type(w) for w in words if isinstance(w, Parallel | Tile)] == [Parallel]
    text = stage_text(kernels(normalized(13, 21, 64)), "vector", AVX2)
    assert "memref.alloc" not in text
    assert text.count("vector.store") == 1


def test_functions_have_loops_of_their_own() -> None:
    words = words_of(normalized(13, 21, 64, bent=True))
    assert not [word for word in words if isinstance(word, ComputeAt)]
    text = stage_text(kernels(normalized(13, 21, 64, bent=True)), "vector", AVX2)
    assert text.count("vector.store") == 2


def test_bytes_have_vectors_of_another_width() -> None:
    i, j = axes("i j")
    x, y = Buffer("x", (40, 50), "int8"), Buffer("y")
    t = Buffer("t", (40, 50), "int8")
    t[i, j] = maximum(x[i, j], 3)
    y[i, j] = cast(t[i, j], "float32") * 0.5
    words = words_of(computation(y))
    assert not [word for word in words if isinstance(word, ComputeAt)]


@pytest.mark.parametrize("target", targets(), ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_numbers(target: Target, shape: tuple[int, int, int]) -> None:
    x, mean, scale = (
        sample(seed, size, "float32")
        for seed, size in enumerate((shape, shape[2:], shape[2:]))
    )
    (got,) = executable(kernels(normalized(*shape)), target)(
        x, mean, scale, order=backwards
    )
    exact = np.maximum((wide(x) - wide(mean)) * wide(scale), 0)
    check(got, exact, 3, (abs(wide(x)) + abs(wide(mean))) * abs(wide(scale)))


@pytest.mark.parametrize(("channels", "rows"), [(1024, 8), (960, 14), (512, 14)])
def test_rows_whole_pages_apart_are_few(channels: int, rows: int) -> None:
    """Of a transpose: they share the set of a cache that their lines are in."""
    i, j, c = axes("i j c")
    x, y = Buffer("x", (channels, 14, 14)), Buffer("y")
    y[i, j, c] = maximum(x[c, i, j], 0)
    (tasks,) = (w for w in words_of(computation(y)) if isinstance(w, Parallel))
    assert tasks.sizes[1] == rows
