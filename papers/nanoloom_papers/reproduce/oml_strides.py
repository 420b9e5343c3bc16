"""Figure 3: vectors along a sum whose right operand lies across it, against none.

A lane is loaded by itself there, from another row: each layer's projection, rows x
hidden times hidden x hidden.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from nanoloom.cache import Cache
from nanoloom.compile_program import compile
from nanoloom.inspect.timing import interleaved
from nanoloom.nest.extent import Lanes
from nanoloom.notation import Buffer, axes, computation
from nanoloom.options import CompileOptions
from nanoloom.schedule.language import Directive, Schedule, Vectorize
from nanoloom.target.facts import Target
from nanoloom_papers.reproduce.oml_models import Array, Layer
from nanoloom_papers.reproduce.oml_results import STRIDES, Result

Run = Callable[[], Array]
PRODUCT = "contraction_*"


def strides(layer: Layer, target: Target, turns: int) -> Iterator[Result]:
    """Seconds of both, checked first."""
    random, width = np.random.default_rng(1), layer.hidden
    given = {
        "a": random.standard_normal((layer.rows, width)).astype(np.float32),
        "b": random.standard_normal((width, width)).astype(np.float32),
    }
    words: Mapping[str, Sequence[Directive]] = {
        "none": (),
        "forced": (Vectorize("y", "k", Lanes(target.lanes(32))),),
    }
    runs = {name: product(given, each, target) for name, each in words.items()}
    a, b = (x.astype(np.float64) for x in given.values())
    room = (width + 2) * np.finfo(np.float32).eps * (abs(a) @ abs(b))
    right = {n: run for n, run in runs.items() if (abs(run() - a @ b) <= room).all()}
    times = interleaved(list(right.values()), turns)
    found = {name: each.median for name, each in zip(right, times, strict=True)}
    for name in runs:
        note = "" if name in right else "wrong result"
        value = found.get(name)
        yield Result(STRIDES, layer.name, layer.size, name, "seconds", value, note)


def product(
    given: Mapping[str, Array], words: Sequence[Directive], target: Target
) -> Run:
    """A product by these words, one thread."""
    i, j, k = axes("i j k")
    left, right = (Buffer(name, x.shape) for name, x in given.items())
    made = Buffer("y")
    made[i, j] += left[i, k] * right[k, j]
    schedules: tuple[tuple[str, Any], ...] = ((PRODUCT, Schedule(tuple(words))),)
    options = CompileOptions(target, schedules=schedules)
    cache = Cache.temporary()
    program = compile(computation(made), threads=1, options=options, cache=cache)
    return lambda: program(given)["y"]
