"""A computation by schedules of one's own: the loops that were asked for, the numbers.

A stencil and the sums of its rows; sizes that no vector and no block divides.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import nanoloom
from nanoloom.cache import Cache
from nanoloom.nest.extent import Lanes
from nanoloom.notation import Buffer, Computation, axes, computation
from nanoloom.options import CompileOptions
from nanoloom.schedule.language import (
    ALL,
    ComputeAt,
    Directive,
    Parallel,
    Schedule,
    Split,
    Tile,
    Vectorize,
)
from nanoloom.target.host import host

ROWS, COLUMNS = 13, 35
TASKS = Parallel("sums", (4,), ALL)
LANES = Lanes(4)


def stencil() -> Computation:
    i, j = axes("i j")
    u, s = Buffer("u", (ROWS + 2, COLUMNS + 2)), Buffer("s", (ROWS, COLUMNS))
    sums = Buffer("sums", (ROWS,))
    around = u[i, j + 1] + u[i + 2, j + 1] + u[i + 1, j] + u[i + 1, j + 2]
    s[i, j] = around - 4 * u[i + 1, j + 1]
    sums[i] += s[i, j] * s[i, j]
    return computation(sums)


SCHEDULES: dict[str, tuple[Directive, ...]] = {
    "none": (),
    "a sum in blocks": (TASKS, Tile("sums", (0, 16), ALL)),
    "rows": (TASKS, ComputeAt("s", "sums", "i")),
    "blocks of a row": (
        TASKS, Split("sums", "j", "jo", "ji", 16), ComputeAt("s", "sums", "jo"),
        Vectorize("s", "j", LANES), Vectorize("sums", "ji", LANES, 2),
    ),
    "vectors of a row": (
        TASKS, Vectorize("sums", "j", LANES), ComputeAt("s", "sums", "j"),
        Vectorize("s", "j", LANES),
    ),
    "points": (ComputeAt("s", "sums", "j"),),
}  # fmt: skip


@pytest.mark.parametrize("name", SCHEDULES)
def test_numbers(name: str, tmp_path: Path) -> None:
    """Small integers, so that sums are exact."""
    schedule = Schedule(SCHEDULES[name])
    options = CompileOptions(host(), schedules=(("reduction_*", schedule),))
    program = nanoloom.compile(stencil(), options=options, cache=Cache(tmp_path))
    u = np.random.default_rng(1).integers(-4, 5, (ROWS + 2, COLUMNS + 2))
    around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
    wanted = ((around - 4 * u[1:-1, 1:-1]) ** 2).sum(axis=1)
    assert wanted.all()
    assert (program({"u": u.astype(np.float32)})["sums"] == wanted).all()


@pytest.mark.parametrize("name", ["vectors of a row", "points"])
def test_what_is_inside_of_a_sum_is_made_there(name: str, tmp_path: Path) -> None:
    program = nanoloom.compile(stencil(), cache=Cache(tmp_path))
    ((_, nest),) = program.nests().items()
    script = Schedule(SCHEDULES[name]).to_transform(nest)
    step = 4 if "vectors" in name else 1
    behind = script[script.index(f"tile_sizes [1, {step}]") :]
    assert "fuse_into_containing_op %s_" in behind
