"""Along which axis vectors run, where their width is any and where it is known."""

from __future__ import annotations

import pytest

from nanoloom.notation import Buffer, Computation, axes, computation, maximum
from nanoloom.schedule.library.vector_axis import axis_of
from nanoloom.target import by_name
from tests.notation.programs import kernels

ANY, KNOWN = ("rv64gcv", "armv9-sve2"), ("x86-64-v4", "aarch64", "neoverse-v2")


def repeated(times: int, kind: str = "float32") -> Computation:
    i, t = axes("i t")
    x, y = Buffer("x", (70, 2), kind), Buffer("y", (70, times), kind)
    y[i, t] = x[i, 0] + x[i, 1]
    return computation(y)


def of_few_channels(summed: bool) -> Computation:
    p, c = axes("p c")
    x, y = Buffer("x", (70, 3)), Buffer("y", (3,) if summed else (3, 70))
    if summed:
        y[c] += x[p, c]
    else:
        y[c, p] = x[p, c]
    return computation(y)


def window(rows: int) -> Computation:
    c, w, k = axes("c w k")
    x, f = Buffer("x", (rows, 70)), Buffer("f", (rows, 3))
    y = Buffer("y", (rows, 68))
    y[c, w] += x[c, w + k] * f[c, k]
    return computation(y)


def largest(step: int) -> Computation:
    c, w, k = axes("c w k")
    x, s, y = Buffer("x", (5, 70)), Buffer("s", (3,)), Buffer("y", (5, 68 // step))
    y[c, w] = maximum(y[c, w], x[c, step * w + k] + s[k])
    return computation(y)


def axis(made: Computation, name: str) -> int | None:
    (kernel,) = kernels(made).kernels.values()
    assert kernel.nest.last is not None
    return axis_of(kernel.nest.last, by_name(name))


@pytest.mark.parametrize(
    ("made", "free", "known"),
    [
        (repeated(2), 0, 1),
        (repeated(3), 0, 1),
        (repeated(4), 1, 1),  # the least vector is full
        (repeated(7, "int8"), 0, 1),
        (repeated(20, "int8"), 1, 1),
        (of_few_channels(summed=False), 1, 1),
        (of_few_channels(summed=True), 1, 0),
        (window(5), 1, 2),
        (largest(1), 1, 2),
        (largest(2), 1, 2),
    ],
    ids=str,
)
def test_the_axis(made: Computation, free: int, known: int) -> None:
    for name in ANY:
        assert axis(made, name) == free
    for name in KNOWN:
        assert axis(made, name) == known
