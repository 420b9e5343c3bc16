"""What sizes decide of a table of calls: what sizes.h describes in C."""

from __future__ import annotations

from dataclasses import dataclass

from nanoloom.dynamic.floor_division import Floor
from nanoloom.dynamic.polynomial import Size
from nanoloom.interface.bounds import Bounds

COUNTED = -1  # a number that a function of the kernel's sizes gives


@dataclass(frozen=True)
class SizesTable:
    """The sizes of a program.

    dims: names of the dimensions.  words: the sizes that anything asks for.  slots: of
    the arena; each is as large as the largest of these words.  bounds: of each
    dimension.  floors: of dimensions, which words have as factors, too.  grown: how
    many of the last dims say how much a session keeps, or are rooms.
    """

    dims: tuple[str, ...]
    words: tuple[Size, ...]
    slots: tuple[tuple[int, ...], ...]
    bounds: tuple[Bounds, ...] = ()
    floors: tuple[Floor, ...] = ()
    grown: int = 0

    @property
    def factors(self) -> tuple[str, ...]:
        """What a word's terms are made of: dimensions, then floors."""
        return (*self.dims, *(floor.name for floor in self.floors))

    @property
    def chosen(self) -> tuple[str, ...]:
        """The dimensions that a caller has numbers for."""
        return self.dims[: len(self.dims) - self.grown]

    def bounds_of(self, name: str) -> Bounds:
        return self.bounds[self.dims.index(name)] if self.bounds else Bounds()
