"""The extents of a statement's axes: stated, or from the shapes that they index.

A buffer is written as a whole.  An axis that is only ever an index by itself goes over
the whole of each dimension that it indexes; one that is shifted, scaled or added to
another (a window's) only has to stay inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from nanoloom.errors import Error
from nanoloom.notation.expression import Element, Expression, parts
from nanoloom.notation.index import Axis, Index


@dataclass(frozen=True)
class Use:
    """One index of an element that is read or written."""

    element: Element
    dimension: int
    size: int

    @property
    def index(self) -> Index:
        return self.element.indices[self.dimension]

    @property
    def place(self) -> str:
        return f"dimension {self.dimension} of {self.element.buffer.name}"


def extents_of(
    target: Element, value: Expression, axes: Sequence[Axis], text: str
) -> dict[Axis, int]:
    """The extent of each axis.

    Raises Error, by the names of axes and buffers, where shapes contradict each other,
    say nothing, or are left.
    """
    reads = [use for x in parts(value) for use in uses(x, text)]
    shifted = {a for use in reads if not use.index.plain for a in use.index.axes}
    solved = Extents(text)
    for axis in axes:
        if axis.extent is not None:
            solved.know(axis, axis.extent, "stated")
    if target.buffer.shape is not None:
        for use in uses(target, text):
            solved.cover(use)
    for use in reads:
        axis = use.index.plain
        if axis is not None and axis not in shifted and axis.extent is None:
            solved.cover(use)
    solved.stay_inside(reads)
    for axis in axes:
        if axis not in solved.known:
            raise Error(
                f"no shape says the extent of axis {axis}",
                where=text,
                hint=f'state it: axes("... {axis} ...", {axis}=...)',
            )
    for use in reads:
        require_inside(use, solved.known, text)
    return solved.known


def uses(x: Expression, text: str) -> list[Use]:
    """The indices of an element; nothing for other expressions."""
    if not isinstance(x, Element):
        return []
    shape = x.buffer.shape
    if shape is None:
        name = x.buffer.name
        raise Error(
            f"{name} has no shape yet",
            where=text,
            hint=f"give it one, or write {name} first",
        )
    return [Use(x, d, size) for d, size in enumerate(shape)]


@dataclass
class Extents:
    """What is known of the axes of a statement.  said: by what."""

    text: str
    known: dict[Axis, int] = field(default_factory=dict)
    said: dict[Axis, str] = field(default_factory=dict)

    def know(self, axis: Axis, extent: int, said: str) -> None:
        self.known[axis] = extent
        self.said[axis] = said

    def cover(self, use: Use) -> None:
        """An axis goes over all of a dimension; what is known of it must agree."""
        axis = use.index.plain
        assert axis is not None, use
        have = self.known.get(axis, use.size)
        if have != use.size:
            raise Error(
                f"axis {axis} is {have} ({self.said[axis]}) and {use.size} "
                f"({use.place})",
                where=self.text,
                hint="give buffers that agree",
            )
        if axis not in self.known:
            self.know(axis, use.size, use.place)

    def stay_inside(self, reads: list[Use]) -> None:
        """The largest extents with which all that is read stays inside its buffer.

        Axes of indices of their own first, then those beside others that are known.
        """
        alone = [use for use in reads if len(use.index.axes) == 1]
        while found := self.largest(alone) or self.largest(reads):
            for axis, extent in found.items():
                self.know(axis, extent, "what is read")

    def largest(self, reads: list[Use]) -> dict[Axis, int]:
        """Of the axes that are the only unknown ones of an index."""
        found: dict[Axis, int] = {}
        for use in reads:
            unknown = [axis for axis in use.index.axes if axis not in self.known]
            if len(unknown) == 1:
                most = largest(use, unknown[0], self.known)
                found[unknown[0]] = min(found.get(unknown[0], most), most)
        return found


def largest(use: Use, axis: Axis, known: dict[Axis, int]) -> int:
    """The largest extent of an axis, at least 1, for which an index stays inside."""
    factor = dict(use.index.terms)[axis]
    low, high = use.index.ends({**known, axis: 1})
    room = use.size - 1 - high if factor > 0 else low
    return max(room // abs(factor), 0) + 1


def require_inside(use: Use, extents: dict[Axis, int], text: str) -> None:
    """Raise Error for an index that leaves its buffer."""
    low, high = use.index.ends(extents)
    if low >= 0 and high < use.size:
        return
    reached = low if low < 0 else high
    raise Error(
        f"{use.element} is out of bounds: index {use.index} reaches {reached}, "
        f"{use.place} has the size {use.size}",
        where=text,
        hint="shift the index, give a larger buffer or state smaller extents",
    )
