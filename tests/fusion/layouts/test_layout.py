"""Layouts as values, and as the words that people write."""

from __future__ import annotations

import pytest

from nanoloom.errors import Error
from nanoloom.fusion.layouts.layout import (
    FIRST,
    LAST,
    Layout,
    Piece,
    blocks,
    candidates,
    layout_named,
)

WHOLE, BLOCKS, INSIDE = Piece.WHOLE, Piece.BLOCKS, Piece.INSIDE


def test_orders() -> None:
    """[n, h, w, c] in memory, with the images in front."""
    n, h, w = ((d, WHOLE) for d in range(3))
    assert LAST.places(4, 1) == [n, h, w, (3, WHOLE)]
    assert FIRST.places(4, 1) == [n, (3, WHOLE), h, w]
    assert FIRST.places(4, 0) == [(3, WHOLE), n, h, w]
    assert blocks(8).places(4, 1) == [n, (3, BLOCKS), h, w, (3, INSIDE)]
    assert blocks(8).places(1, 0) == [(0, BLOCKS), (0, INSIDE)]


def test_sizes() -> None:
    layout = blocks(8)
    assert [layout.size(48, piece) for piece in Piece] == [48, 6, 8]
    assert layout.divides([48]) and layout.divides([8, 0, 16])
    assert not layout.divides([48, 20]) and not layout.divides([8])


def test_on_a_target() -> None:
    assert candidates(8) == (LAST, FIRST, blocks(16), blocks(8))
    assert len({*candidates(4)}) == 4 and str(candidates(4)[2]) == "blocks of 8"


@pytest.mark.parametrize(
    ("word", "layout"),
    [("auto", None), ("last", LAST), ("first", FIRST), ("16", blocks(16))],
)
def test_words(word: str, layout: Layout | None) -> None:
    assert layout_named(word) == layout


@pytest.mark.parametrize("word", ["", "0", "1", "nchw", "-8", "8.0", "99999999", "١٦"])
def test_words_that_are_none(word: str) -> None:
    with pytest.raises(Error, match="there is no layout"):
        layout_named(word)
