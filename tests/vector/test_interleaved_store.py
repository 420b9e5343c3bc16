"""Rows of a few numbers for each point: vectors of points, stored together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nanoloom.schedule.choose import choose
from nanoloom.schedule.language import UnrollAndJam, Vectorize
from nanoloom.target import by_name
from tests.filecheck import check_text
from tests.linalg.bounds import sample
from tests.vector.kernel_harness import (
    backwards,
    program_of,
    run,
    stage_text,
    targets,
)

TARGETS = pytest.mark.parametrize("target", targets(), ids=str)
Array = np.ndarray


def repeated(times: int) -> Any:
    """Each number so often along the last axis, and each row twice."""

    def make(b: Any, x: Any) -> Any:
        rows, points = x.shape
        wide = b.broadcast_to(
            b.reshape(x, (rows, 1, points, 1)), (rows, 2, points, times)
        )
        return b.reshape(wide, (2 * rows, points * times))

    return make


def beside(b: Any, x: Any, numbers: Any, number: Any) -> Any:
    """x[s, i] * numbers[s] + number, of all s behind each other at i."""
    turned = b.transpose(x, (1, 0))
    return b.elementwise(lambda s, f, c: s * f + c, turned, numbers, number)


@pytest.mark.drawn(one_in=3)
@TARGETS
@pytest.mark.parametrize("times", [2, 3, 4, 5])
@pytest.mark.parametrize("points", [1, 2, 7, 16, 17, 33, 50])
def test_repeated(points: int, times: int, target: Any) -> None:
    kind = ("float32", "float64", "int32", "int64", "uint8")[(points + times) % 5]
    x = sample(points, (3, points), kind)
    got = run(repeated(times), x, target=target, order=backwards)
    exact = x.repeat(2, 0).repeat(times, 1)
    assert (got == exact).all()
    assert points * times == 1 or not (got == np.roll(exact, 1)).all()


@TARGETS
@pytest.mark.parametrize("parts", [2, 3, 4])
@pytest.mark.parametrize("points", [5, 24, 33])
def test_parts_side_by_side(points: int, parts: int, target: Any) -> None:
    """Parts differ: a lane of a wrong one is noticed."""
    r = np.random.default_rng(points * parts)
    shapes = (parts, points), (parts,), (1,)
    arrays = [r.integers(-9, 9, shape).astype(np.float32) for shape in shapes]
    got = run(beside, *arrays, target=target, order=backwards)
    x, numbers, number = arrays
    assert (got == x.T * numbers + number).all()


def test_words() -> None:
    """Vectors go along the points where those of a row are four at most, and few
    points or long rows have them along the row."""
    target = by_name("x86-64-v3")
    for points, times, axis in ((40, 2, "d2"), (3, 2, "d3"), (40, 5, "d3")):
        shape = (3, points)
        program = program_of(repeated(times), (shape, "float32"), target=target)
        (kernel,) = program.kernels.values()
        words = choose(kernel.nest, target).directives
        (found,) = (word for word in words if isinstance(word, Vectorize))
        assert found.loop == axis
        jammed = [word.count for word in words if isinstance(word, UnrollAndJam)]
        assert jammed == ([times] if axis == "d2" else [])


def test_stores_are_whole_vectors() -> None:
    target = by_name("x86-64-v3")
    program = program_of(repeated(2), ((3, 40), "float32"), target=target)
    check_text(
        stage_text(program, "vector", target),
        """
        CHECK: vector.load
        CHECK: vector.shuffle {{.*}} [0, 0, 1, 1, 2, 2, 3, 3]
        CHECK-NEXT: vector.store
        CHECK: vector.shuffle {{.*}} [4, 4, 5, 5, 6, 6, 7, 7]
        CHECK-NEXT: vector.store
        CHECK-NOT: maskedstore
        """,
    )


def test_a_sum_in_what_is_repeated() -> None:
    """Sums of rows, then each twice: other stages of the kernel keep their vectors."""

    def make(b: Any, x: Any) -> Any:
        total = b.reduce(lambda s, t: s + t, x, [1], 0)
        return repeated(2)(b, b.elementwise(lambda s, t: s + t, x, total))

    x = np.random.default_rng(0).integers(-9, 9, (3, 33)).astype(np.float32)
    got = run(make, x)
    assert (got == (x + x.sum(1, keepdims=True)).repeat(2, 0).repeat(2, 1)).all()
