"""Names of parts say which they are, and other names are none."""

from __future__ import annotations

import pytest

from nanoloom.interface.stacked_names import Index, named_part, part_name, parts_of


@pytest.mark.parametrize("index", [(0, None), (None, 12, None), (1, 0, None, None)])
def test_there_and_back(index: Index) -> None:
    for whole in ("past", "past[0]", "past[1, :]"):
        assert named_part(part_name(whole, index)) == (whole, index)


@pytest.mark.parametrize(
    "name", ["past", "past[0]", "past[-1, :]", "past[0,:]", "past[:]", "past[0, :"]
)
def test_no_part(name: str) -> None:
    assert named_part(name) == (name, ())


def test_the_parts_among_names() -> None:
    names = ["y", "past[0, :]", "past_key[0, :]", "past[1, :]", "other"]
    assert parts_of("past", names) == {"past[0, :]": (0, None), "past[1, :]": (1, None)}
    assert parts_of("other", names) == {"other": ()}
    assert parts_of("past", ["past", *names]) == {"past": ()}
    assert part_name("past", (None, None)) == "past"
