"""A fusion's footprint and what it computes again, against points that are counted."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from random import Random

import pytest

from nanoloom.errors import Error
from nanoloom.nest.fusion import fusion, placed, plan_of
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.plan import Fusion
from nanoloom.schedule.language import ComputeAt, Schedule, Split
from tests.nest.nests import matmul, windows

Points = set[tuple[int, int]]


def read_by_blocks(
    rows: int, columns: int, step: int, reach: int, block: int
) -> Iterator[tuple[Points, Points]]:
    """The points of b and t that each block of the pool's rows reads."""
    for first in range(0, rows, block):
        b: Points = set()
        for i, j in product(range(first, min(rows, first + block)), range(columns)):
            b |= {
                (step * i + r, step * j + s)
                for r, s in product(range(reach), range(reach))
            }
        yield b, b | {(y + 1, x) for y, x in b}


def in_blocks(nest: LoopNest, block: int) -> LoopNest:
    words = (
        Split("p", "i", "io", "ii", block),
        ComputeAt("b", "p", "io"),
        ComputeAt("t", "p", "io"),
    )
    return Schedule(words).apply(nest)


@pytest.mark.parametrize("seed", range(12))
def test_points_are_those_that_blocks_read(seed: int) -> None:
    """Of blocks that divide the rows, and windows that leave nothing out."""
    random = Random(seed)
    step = random.randint(1, 3)
    reach = random.randint(step, 4)
    block, many = random.randint(1, 4), random.randint(1, 4)
    columns = random.randint(1, 7)
    rows = block * many
    nest = in_blocks(windows(rows, columns, step=step, reach=reach), block)
    found = {x.producer: x for x in plan_of(nest)}
    blocks = list(read_by_blocks(rows, columns, step, reach, block))
    for number, name in enumerate(("b", "t")):
        each = [len(points[number]) for points in blocks]
        assert found[name].footprint == max(each), name
        once = len(set().union(*(points[number] for points in blocks)))
        assert found[name].recompute == sum(each) - once, name
        assert found[name].bytes == 4 * once
        assert found[name].step_bytes == 4 * max(each)


def test_what_a_plan_says_is_what_words_make() -> None:
    """A fusion that a nest does not have yet is described as the one that it has."""
    nest = Schedule((Split("p", "i", "io", "ii", 2),)).apply(windows(6, 5))
    first = fusion(nest, "b", "p", "io")
    assert first == Fusion("b", "p", "io", 5 * 11, 2 * 11, 4 * 13 * 11, 4 * 5 * 11)
    nest = placed(nest, first)
    second = fusion(nest, "t", "p", "io")
    made = in_blocks(windows(6, 5), 2)
    assert plan_of(placed(nest, second)) == plan_of(made) == (second, first)
    assert placed(made, first) is made


def test_numbers_that_sums_begin_with_are_no_fusion() -> None:
    words = (
        Split("point", "i", "io", "ii", 16),
        ComputeAt("product", "point", "io"),
        ComputeAt("fill", "point", "io"),
    )
    (found,) = plan_of(Schedule(words).apply(matmul()))
    assert found.producer == "product" and not found.recompute
    assert found.footprint == 16 * 40 * 48  # products of numbers
    assert found.bytes == 4 * 64 * 40 and found.step_bytes == 4 * 16 * 40


def test_no_fusion_of_what_is_not_read() -> None:
    with pytest.raises(Error, match="reads nothing that"):
        Schedule((ComputeAt("p", "b", "y"),)).apply(windows())
