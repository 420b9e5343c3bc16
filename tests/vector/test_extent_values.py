"""What is left of blocks of blocks: one smaller tile, of a number that is known."""

from __future__ import annotations

import re

import pytest

from nanoloom.nest.extent import Lanes
from nanoloom.notation import Buffer, Computation, axes, computation
from nanoloom.schedule.language import (
    ALL,
    Directive,
    Parallel,
    Schedule,
    Tile,
    UnrollAndJam,
    Vectorize,
)
from nanoloom.target import Target, by_name
from tests.linalg.bounds import sample, wide
from tests.notation.programs import kernels
from tests.vector.checks import check
from tests.vector.kernel_harness import backwards, executable, stage_text, targets

TARGETS = pytest.mark.parametrize("target", targets(), ids=str)


def product(m: int, k: int, n: int) -> Computation:
    i, j, r = axes("i j r")
    a, b, c = Buffer("a", (m, k)), Buffer("b", (k, n)), Buffer("c", (m, n))
    c[i, j] += a[i, r] * b[r, j]
    return computation(c)


def words(
    target: Target, task: int, tile: tuple[int, int], rows: int
) -> tuple[Directive, ...]:
    return (
        Parallel("c", (task, 0, 0), ALL),
        Tile("c", (*tile, 0), ALL),
        Vectorize("c", "j", Lanes(target.lanes(32))),
        UnrollAndJam("c", "i", rows),
        UnrollAndJam("c", "j", 2),
    )


def sums(text: str) -> set[int]:
    """Of each loop that is summed over, how many vectors it carries."""
    loops = re.findall(r"^.*scf\.for.*iter_args\((.*?)\) ->", text, re.MULTILINE)
    return {carried.count(" = ") for carried in loops}


def test_blocks_of_blocks_leave_few_numbers_of_rows() -> None:
    """Tasks of 26 rows, and of 1; in tiles of 9, 8 and 1, which leave 0, 2 and 1 of 3.

    Of 20 columns there are one vector of 16 and 4, of 7 at the end 7.
    """
    target = by_name("x86-64-v3")
    made = Schedule(words(target, 26, (9, 20), 3))
    text = stage_text(kernels(product(131, 5, 47)), "vector", target, script=made)
    assert sums(text) == {6, 4, 3, 2, 1}
    single = re.findall(r"scf\.for %\S+ = %(?!c0 ).* step %c1 {", text)
    assert len(single) == 1, "only tasks are one behind the other"
    assert text.count("arith.cmpi eq") == 2 + 3 * 2


def test_every_number_has_a_tile_of_its_own() -> None:
    """Tiles of 7 of tasks of 26 rows and of 16: 7, 5 and 2 rows; of 4, 3, 1 and 2."""
    target = by_name("x86-64-v3")
    made = Schedule(words(target, 26, (7, 0), 4))
    text = stage_text(kernels(product(130 + 16, 5, 16)), "vector", target, script=made)
    assert sums(text) == {8, 6, 4, 2}


@pytest.mark.drawn
@TARGETS
@pytest.mark.parametrize("sizes", [(131, 5, 47), (53, 9, 20), (27, 3, 61)], ids=str)
@pytest.mark.parametrize("tile", [(9, 20), (7, 24), (0, 0)], ids=str)
def test_numbers(
    target: Target, sizes: tuple[int, int, int], tile: tuple[int, int]
) -> None:
    m, k, n = sizes
    a, b = sample(1, (m, k), "float32"), sample(2, (k, n), "float32")
    program = kernels(product(m, k, n))
    (kernel,) = program.kernels.values()
    text = Schedule(words(target, 26, tile, 4)).to_transform(kernel.nest)
    (got,) = executable(program, target, text)(a, b, order=backwards)
    check(got, wide(a) @ wide(b), k + 1, abs(wide(a)) @ abs(wide(b)))
