"""Where a stage reads or writes a buffer: an expression of its axes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property


@dataclass(frozen=True)
class Index:
    """offset + sum of factor * axis.

    terms: (axis, factor), in the order in which they are written.  other: an expression
    that is not linear, as text; the axes it depends on stand in `terms`, without a
    meaning of their factors.
    """

    terms: tuple[tuple[str, int], ...] = ()
    offset: int = 0
    other: str = ""

    @cached_property
    def axes(self) -> tuple[str, ...]:
        """The axes that it depends on, each once."""
        return tuple(dict.fromkeys(axis for axis, _ in self.terms))

    @cached_property
    def axis(self) -> str | None:
        """The axis that it is, None if it is more or something else."""
        plain = not self.other and not self.offset and len(self.terms) == 1
        return self.terms[0][0] if plain and self.terms[0][1] == 1 else None

    def factor(self, axis: str) -> int | None:
        """Of an axis, None if the expression is not linear in it."""
        found = [factor for name, factor in self.terms if name == axis]
        return None if self.other and found else sum(found)

    def moved(self, by: int) -> Index:
        """by + this."""
        if not by:
            return self
        other = f"{self.other} + {by}" if self.other else ""
        return replace(self, offset=self.offset + by, other=other)

    def __str__(self) -> str:
        if self.other:
            return self.other
        parts = [a if f == 1 else f"{f}*{a}" for a, f in self.terms]
        if self.offset or not parts:
            parts.append(str(self.offset))
        return " + ".join(parts).replace("+ -", "- ")


@dataclass(frozen=True)
class Access:
    """buffer[indices]; element: of the numbers, narrow integers with the sign that
    they are widened with (s8, u8)."""

    buffer: str
    indices: tuple[Index, ...]
    element: str

    @property
    def axes(self) -> frozenset[str]:
        """All axes that the place depends on."""
        return frozenset(a for index in self.indices for a in index.axes)

    @cached_property
    def plain(self) -> tuple[str | None, ...]:
        """The axis of each index, None where it is not one as it is."""
        return tuple(index.axis for index in self.indices)

    def moved(self, begin: tuple[int, ...]) -> Access:
        """So far behind where it is, () for the same place."""
        if not any(begin):
            return self
        pairs = zip(self.indices, begin, strict=True)
        return replace(self, indices=tuple(x.moved(by) for x, by in pairs))

    def lies_along(self, axis: str) -> bool:
        """Whether a step along an axis is a step to the next number, if to another."""
        using = [index for index in self.indices if axis in index.axes]
        return not using or (len(using) == 1 and self.plain[-1] == axis)

    def follows_on(self, axis: str, most: int = 1) -> bool:
        """Whether a step along an axis is one to the next number, or to the same.

        most: to so many numbers further on.
        """
        using = [index for index in self.indices if axis in index.axes]
        last = self.indices[-1:]
        return not using or (
            using == [*last] and 1 <= (using[0].factor(axis) or 0) <= most
        )

    def __str__(self) -> str:
        return f"{self.buffer}[{', '.join(map(str, self.indices))}]"
