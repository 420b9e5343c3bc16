"""Garbage is looked for seldom inside, and as often as before behind it."""

from __future__ import annotations

import gc
from collections.abc import Generator

import pytest

from nanoloom.garbage import COLLECTED, seldom_collected

OFTEN = 700, 10, 5


@pytest.fixture(autouse=True)
def thresholds() -> Generator[None]:
    before = gc.get_threshold()
    gc.set_threshold(*OFTEN)
    yield
    gc.set_threshold(*before)


def test_seldom_inside() -> None:
    with seldom_collected():
        assert gc.get_threshold() == (COLLECTED, *OFTEN[1:])
        with seldom_collected():  # of another thread, or of a call inside
            pass
        assert gc.get_threshold() == (COLLECTED, *OFTEN[1:])
    assert gc.get_threshold() == OFTEN


def test_as_before_behind_an_error() -> None:
    with pytest.raises(ValueError, match="no model"), seldom_collected():
        raise ValueError("no model")
    assert gc.get_threshold() == OFTEN


@pytest.mark.parametrize("given", [(0, 10, 10), (2 * COLLECTED, 5, 5)])
def test_who_looks_less_often_goes_on_so(given: tuple[int, int, int]) -> None:
    gc.set_threshold(*given)
    with seldom_collected():
        assert gc.get_threshold() == given
    assert gc.get_threshold() == given
