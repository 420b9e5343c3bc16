"""A schedule is a value: it prints, hashes and compares."""

from __future__ import annotations

import dataclasses

import pytest

from nanoloom.nest.extent import Lanes
from nanoloom.schedule.language import (
    Nanokernel,
    Parallel,
    Schedule,
    Tile,
    Vectorize,
)

DIRECTIVES = (
    Parallel("point", (4, 0), ("all",)),
    Nanokernel(6, 4, Lanes(8), True),
    Vectorize("point", "j", Lanes(8)),
)
ONE = Schedule(DIRECTIVES, "why")


def test_equal_schedules_are_one() -> None:
    other = Schedule(tuple(map(dataclasses.replace, DIRECTIVES)), "other words")
    assert other == ONE
    assert len({ONE, other}) == 1
    assert dataclasses.replace(other, directives=other.directives[:2]) != ONE


def test_it_prints_its_directives_in_order() -> None:
    text = str(ONE)
    assert text.index("Parallel") < text.index("Nanokernel") < text.index("Vectorize")
    assert "Nanokernel(6, 4, Lanes(8), True)" in text


@pytest.mark.parametrize("directive", [*ONE.directives, Tile("point", (1, 2))])
def test_a_directive_cannot_be_changed(directive: object) -> None:
    with pytest.raises((dataclasses.FrozenInstanceError, TypeError, AttributeError)):
        directive.sizes = ()  # type: ignore[attr-defined]
