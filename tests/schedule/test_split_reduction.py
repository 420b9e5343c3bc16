"""A long sum in parts that tasks share: numbers, at any number of threads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import nanoloom
from nanoloom.cache import Cache
from nanoloom.nest.extent import Lanes
from nanoloom.notation import Buffer, Computation, axes, computation, maximum
from nanoloom.options import CompileOptions
from nanoloom.schedule.language import (
    ALL,
    Parallel,
    Schedule,
    SplitReduction,
    Vectorize,
)
from nanoloom.target.host import host
from tests.linalg.bounds import sample

ROWS, LENGTH, PARTS = 7, 900, 4


def largest(kind: str) -> Computation:
    i, k = axes("i k")
    x, y = Buffer("x", (ROWS, LENGTH), kind), Buffer("y", (ROWS,), kind)
    y[i] = maximum(y[i], x[i, k])
    return computation(y)


def total(kind: str) -> Computation:
    i, k = axes("i k")
    x, y = Buffer("x", (ROWS, LENGTH), kind), Buffer("y", (ROWS,), kind)
    y[i] += x[i, k]
    return computation(y)


@pytest.mark.drawn
@pytest.mark.parametrize("make", [largest, total])
@pytest.mark.parametrize("kind", ["int32", "float32"])
def test_partial_results(make: object, kind: str, tmp_path: Path) -> None:
    made, cache = make(kind), Cache(tmp_path)  # type: ignore[operator]
    schedule = Schedule((
        SplitReduction("y", "k", PARTS),
        Parallel("y_parts", (0, 1, 0), ALL),
        Vectorize("y_parts", "k", Lanes(host().lanes(32)), 2),
    ))  # fmt: skip
    options = CompileOptions(host(), schedules=(("*", schedule),))
    x = sample(1, (ROWS, LENGTH), kind)
    got = [
        nanoloom.compile(made, threads=threads, options=options, cache=cache)({"x": x})
        for threads in (1, 2)
    ]
    one, other = got[0]["y"], got[1]["y"]
    assert (one == other).all()
    exact = x.max(1) if make is largest else x.astype(np.float64).sum(1)
    size = abs(x.astype(np.float64)).sum(1)
    bound = 0 if make is largest or kind == "int32" else LENGTH * 2.0**-24 * size
    wrap = exact.astype(np.int64).astype(np.int32) if kind == "int32" else exact
    assert (abs(one - wrap) <= bound).all()
    assert not (abs(0 * one - wrap) <= bound).all()
