"""How many rows are a task, where one panel holds all columns and where many do."""

from __future__ import annotations

import pytest

from nanoloom.nest.granularity import FEWEST_TASKS, TASK_ELEMENTS
from nanoloom.schedule.choose import choose
from nanoloom.schedule.language import Parallel
from nanoloom.schedule.library.row_block import (
    row_block,
    rows_of_one_panel,
)
from nanoloom.target import by_name
from tests.nest.nests import matmul

LEAST_WORK = 64 * TASK_ELEMENTS


@pytest.mark.parametrize("extent", [1, 2, 49, 196, 1001])
def test_blocks_of_one_panel_have_enough_to_do(extent: int) -> None:
    for a_row in (1, 1000, LEAST_WORK, 3 * LEAST_WORK):
        work = extent * a_row
        rows = rows_of_one_panel(extent, work)
        blocks = -(-extent // rows)
        assert 1 <= blocks <= FEWEST_TASKS
        assert blocks == 1 or work // blocks >= LEAST_WORK // 2


def test_a_block_that_is_alone_may_be_larger() -> None:
    assert row_block(196, 3, 128) == 196
    assert row_block(196, 3, rows_of_one_panel(196, 196 * 112 * 672)) == 27


@pytest.mark.parametrize("m, k, tasks", [(196, 672, 8), (196, 100, 4), (30, 9, 1)])
def test_one_panel_of_columns_is_several_tasks(m: int, k: int, tasks: int) -> None:
    """The rows of MobileNetV3's products to 112 channels, for several threads."""
    words = choose(matmul(m, k, 112), by_name("x86-64-v4")).directives
    (outer,) = [word for word in words if isinstance(word, Parallel)]
    rows, columns = outer.sizes[:2]
    assert columns == 112
    assert -(-m // (rows or m)) == tasks
