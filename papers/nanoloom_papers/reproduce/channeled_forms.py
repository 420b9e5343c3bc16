"""Chapter H's schedules of its convolution, in nanoloom's words.

    for co: for n: for y: for xo:      a tile of pixels and vectors of channels
      for rz: for ry: for rx:
        the tile, unrolled: conv += weights * image
      the tile, unrolled: relu

They differ in how the tile becomes vectors: its loops are unrolled before each copy
becomes vectors (early), as it becomes vectors (late), or there are none, because it is
one vector of two axes (vectors).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from nanoloom.nest.extent import Lanes
from nanoloom.schedule.language import (
    ComputeAt,
    CopyOperand,
    Directive,
    Reorder,
    Schedule,
    Split,
    Unroll,
    UnrollAndJam,
    Vectorize,
)
from nanoloom.target.facts import Target

SUMS = ("rz", "ry", "rx")
FILTER = 0  # the operand of `conv`, in the order of the statement
# What is computed in a tile of relu, with its axes x and c: the kernel adds the bias
# to the sums, which begin with zeros.
POINTS = (("fill", "d2", "d3"), ("conv_2", "x", "c"))
ROWS = 8  # of the image, whose tiles share a copy of the filter's columns


@dataclass(frozen=True)
class Tile:
    """A register tile: pixels, and vectors of channels of so many lanes."""

    pixels: int
    vectors: int
    lanes: int

    @property
    def columns(self) -> int:
        return self.vectors * self.lanes

    @property
    def short(self) -> str:
        return f"{self.pixels} x {self.vectors}"

    def __str__(self) -> str:
        return f"{self.short} vectors of {self.lanes}"


def tile_of(form: str, target: Target) -> Tile:
    """Accumulators with room for what they are made of.

    5 x 4 of 32 registers, the document's; 5 x 2 of 16, because 5 divides its 100
    columns and no loop is left over.  Where loops outside have no tiles, 6 x 2.
    """
    lanes = target.lanes(32)
    if target.vector.registers >= 32:
        return Tile(5, 4, lanes)
    return Tile(6 if form.endswith("-copied") else 5, 2, lanes)


def around(tile: Tile) -> tuple[Directive, ...]:
    """The document's loops over tiles, and all stages inside of them."""
    inside = [ComputeAt(name, "relu", "xo") for name in ("conv_2", "conv", "fill")]
    return (
        Split("relu", "c", "co", "ci", tile.columns),
        Split("relu", "x", "xo", "xi", tile.pixels),
        Reorder("relu", ("co", "n", "y", "xo", "xi", "ci")),
        *inside,
    )


def early(tile: Tile) -> Schedule:
    """Each tile's loops have steps of one vector, and are unrolled as loops."""
    words = [*around(tile)]
    for stage, x, c in (*POINTS, ("conv", "x", "c"), ("relu", "xi", "ci")):
        words += [
            Split(stage, c, "cv", "lanes", tile.lanes),
            Vectorize(stage, "lanes", Lanes(tile.lanes)),
        ]
        if stage == "conv":
            words.append(Reorder(stage, (*SUMS, x, "cv", "lanes")))
        words += [Unroll(stage, "cv"), Unroll(stage, x)]
    return Schedule(tuple(words))


def late(tile: Tile) -> Schedule:
    """The tile's loops are vectors first, and unrolled as these become code."""
    words = [*around(tile), Reorder("conv", (*SUMS, "x", "c"))]
    for stage, x, c in (*POINTS, ("conv", "x", "c"), ("relu", "xi", "ci")):
        words.append(Vectorize(stage, c, Lanes(tile.lanes)))
        words += [Unroll(stage, c), Unroll(stage, x)]
    return Schedule(tuple(words))


def vectors(tile: Tile) -> Schedule:
    """The tile is one vector of two axes, and nothing is unrolled."""
    words = [*around(tile), Reorder("conv", (*SUMS, "x", "c"))]
    for stage, x, c in (*POINTS, ("conv", "x", "c"), ("relu", "xi", "ci")):
        words.append(Vectorize(stage, c, Lanes(tile.columns)))
        words.append(Vectorize(stage, x, Lanes(tile.pixels)))
    return Schedule(tuple(words))


def copied(tile: Tile) -> tuple[Directive, ...]:
    """Rows of the image share a copy of the filter's columns, one behind the other.

    All columns are computed of some rows, which stay in the cache, before the next
    ones.  The tile's loops are those of `conv` itself, inside of them.
    """
    return (
        Split("relu", "c", "co", "ci", tile.columns),
        Split("relu", "y", "yo", "yi", ROWS),
        Reorder("relu", ("n", "yo", "co", "yi", "x", "ci")),
        *[ComputeAt(name, "relu", "co") for name in ("conv_2", "conv", "fill")],
        CopyOperand("conv", FILTER, Lanes(tile.lanes)),
        Vectorize("fill", "d3", Lanes(tile.lanes)),
        Vectorize("conv_2", "c", Lanes(tile.lanes)),
        Vectorize("relu", "ci", Lanes(tile.lanes)),
    )


def late_copied(tile: Tile) -> Schedule:
    """Late unrolling behind a copy of the filter."""
    words = (
        *copied(tile),
        Vectorize("conv", "c", Lanes(tile.lanes)),
        UnrollAndJam("conv", "x", tile.pixels),
        UnrollAndJam("conv", "c", tile.vectors),
    )
    return Schedule(words)


def vectors_copied(tile: Tile) -> Schedule:
    """Vectors of two axes behind a copy of the filter."""
    words = (
        *copied(tile),
        Vectorize("conv", "c", Lanes(tile.columns)),
        Vectorize("conv", "x", Lanes(tile.pixels)),
    )
    return Schedule(words)


FORMS: dict[str, Callable[[Tile], Schedule]] = {
    "early": early,
    "late": late,
    "vectors": vectors,
    "late-copied": late_copied,
    "vectors-copied": vectors_copied,
}
TITLES = {
    "early": "early unrolling",
    "late": "late unrolling",
    "vectors": "vectors of two axes",
    "late-copied": "late unrolling, filter copied",
    "vectors-copied": "vectors of two axes, filter copied",
    "nanoloom": "automatic",
}
