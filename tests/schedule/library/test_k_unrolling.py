"""How many steps of a sum are a round of a nanokernel's loop."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nanoloom.schedule.library.k_unrolling import steps_of_round
from nanoloom.target import by_name

CORE = by_name("znver4")
IN_ORDER = replace(CORE, vector=replace(CORE.vector, in_order=True))


@pytest.mark.parametrize(
    ("rows", "vectors", "steps"), [(14, 2, 1), (28, 1, 1), (6, 2, 2), (5, 1, 4)]
)
def test_rows_that_share_what_is_loaded(rows: int, vectors: int, steps: int) -> None:
    """A tile of many multiply-adds needs no second step beside it."""
    assert steps_of_round(rows, vectors, CORE, streams=False) == steps


@pytest.mark.parametrize(
    ("rows", "vectors", "steps"), [(14, 2, 4), (6, 2, 8), (3, 4, 8), (1, 4, 8)]
)
def test_rounds_that_wait(rows: int, vectors: int, steps: int) -> None:
    """For panels that come once, and for sums of a core that runs in order."""
    assert steps_of_round(rows, vectors, CORE, streams=True) == steps
    assert steps_of_round(rows, vectors, IN_ORDER, streams=False) == steps


def test_few_rows_wait_for_what_they_load() -> None:
    assert steps_of_round(3, 4, CORE, streams=False) == 8
    assert steps_of_round(4, 5, CORE, streams=False) == 4
