"""A layout: in which order a tensor's elements lie, and in which blocks.

A tensor's dimensions have the order in which a kernel's author writes them, channels
last.  A layout says where the last one, of the channels, lies in memory:

    LAST            [n, h, w, c]
    FIRST           [n, c, h, w]
    blocks(16)      [n, c / 16, h, w, 16]
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from nanoloom.errors import Error
from nanoloom.target.facts import WIDEST_BITS


class Piece(Enum):
    """What of a dimension one place of a tensor in memory has."""

    WHOLE = "whole"
    BLOCKS = "blocks"  # the number of a block
    INSIDE = "inside"  # where in its block


Place = tuple[int, Piece]  # a dimension, and what of it


@dataclass(frozen=True, order=True)
class Layout:
    """is_first: the channels, or their blocks, lie in front of the image's axes.

    block: so many channels lie side by side, behind them; 0 for none.
    """

    is_first: bool = False
    block: int = 0

    def __str__(self) -> str:
        if self.block:
            return f"blocks of {self.block}"
        return "channels first" if self.is_first else "channels last"

    def divides(self, numbers: Iterable[int]) -> bool:
        """Whether so many channels are whole blocks, and somewhere more than one."""
        given = list(numbers)
        whole = all(number % self.block == 0 for number in given)
        return whole and max(given) > self.block

    def split(self, dim: int) -> list[Place]:
        """A dimension where it stands, in two if there are blocks: the same bytes."""
        if self.block:
            return [(dim, Piece.BLOCKS), (dim, Piece.INSIDE)]
        return [(dim, Piece.WHOLE)]

    def places(self, rank: int, front: int) -> list[Place]:
        """The order of a tensor whose last dimension is the channels.

        front: so many dimensions stay in front of all.
        """
        last, kept = rank - 1, [(d, Piece.WHOLE) for d in range(rank - 1)]
        if not self.is_first:
            return [*kept, *self.split(last)]
        outer, *inner = self.split(last)
        return [*kept[:front], outer, *kept[front:], *inner]

    def size(self, extent: int, piece: Piece) -> int:
        """Of a piece of a dimension of this extent."""
        if piece is Piece.WHOLE:
            return extent
        return self.block if piece is Piece.INSIDE else extent // self.block


LAST, FIRST = Layout(), Layout(is_first=True)


def blocks(count: int) -> Layout:
    """[c / count, ..., count]"""
    return Layout(is_first=True, block=count)


def candidates(lanes: int) -> tuple[Layout, ...]:
    """What is looked at on a target with vectors of so many lanes."""
    return (LAST, FIRST, blocks(2 * lanes), blocks(lanes))


def layout_named(word: str) -> Layout | None:
    """What a person asks for: last, first, or a number of channels in a block.

    None for auto, the fastest.  Raises Error for anything else.
    """
    known = {"auto": None, "last": LAST, "first": FIRST}
    if word in known:
        return known[word]
    number = word.isascii() and word.isdigit() and len(word) <= len(str(WIDEST_BITS))
    if number and 1 < int(word) <= WIDEST_BITS:
        return blocks(int(word))
    raise Error(
        f"there is no layout {word}",
        hint="it is auto, last, first or a number of channels in a block",
    )
