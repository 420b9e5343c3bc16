"""Loops that go over several axes of a tensor, or over a part of one: split, or joined.

t shown with two axes as one, read at i     ->  t[a, b] for loops a and b
t shown with one axis as two, read at a, b  ->  t[4 a + b]
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from operator import mul

from nanoloom.ir.linalg_query import Op, extents, iterators

Term = tuple[str, int]  # a loop, and its factor in an index


@dataclass
class Loops:
    """The loops of an operation while some of them are split or made one.

    extents: by name.  parts: of each old loop, by number, the names of what it became.
    """

    kinds: list[str]
    extents: dict[str, int]
    parts: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    @classmethod
    def of(cls, op: Op) -> Loops:
        sizes = {str(n): extent for n, extent in enumerate(extents(op))}
        return cls(iterators(op), sizes, {name: [name] for name in sizes})

    def cut(self, name: str, inner: int) -> tuple[str, str]:
        """Two loops in place of one: over blocks, and over the points of a block."""
        one, other = f"{name}o", f"{name}i"
        whole = self.extents.pop(name)
        self.extents |= {one: whole // inner, other: inner}
        for found in self.parts.values():
            if name in found:
                at = found.index(name)
                found[at : at + 1] = [one, other]
        return one, other

    def join(self, one: str, other: str) -> str:
        """One loop in place of two, the first of which goes over blocks."""
        self.extents[one] *= self.extents.pop(other)
        for found in self.parts.values():
            if other in found:
                found.remove(other)
        return one

    def is_summed(self, name: str) -> bool:
        (number,) = [old for old, found in self.parts.items() if name in found]
        return self.kinds[int(number)] == "reduction"

    @property
    def order(self) -> list[str]:
        """The parallel ones, then those that reduce."""
        names = [name for found in self.parts.values() for name in found]
        return sorted(names, key=self.is_summed)


def stepped(
    group: Sequence[int],
    sizes: Sequence[int],
    terms: Sequence[list[Term]],
    loops: Loops,
) -> list[Term]:
    """The index of an axis that is shown as several: sum of theirs, so far apart."""
    behind = [*accumulate([sizes[d] for d in group[:0:-1]], mul, initial=1)][::-1]
    made = [
        (name, factor * apart)
        for d, apart in zip(group, behind, strict=True)
        for name, factor in terms[d]
    ]
    found: list[Term] = []
    for name, factor in made:
        before = found[-1] if found else ("", 0)
        beside = before[1] == factor * loops.extents[name]
        if beside and loops.is_summed(name) and loops.is_summed(before[0]):
            found[-1] = loops.join(before[0], name), factor
        else:
            found.append((name, factor))
    return found


def over_axes(
    groups: Iterable[tuple[list[Term], list[int]]], loops: Loops
) -> list[list[Term]] | None:
    """The indices of axes that are shown as one, each within its own extent."""
    found: list[list[Term]] = []
    for terms, sizes in groups:
        axes: list[list[Term]] = []
        for size in reversed(sizes[1:]):
            inside = within(terms, size, loops)
            if inside is None:
                return None
            here, terms = inside
            axes.append(here)
        found += [terms, *reversed(axes)]
    return None if any(not each for each in found) else found


def within(
    terms: list[Term], size: int, loops: Loops
) -> tuple[list[Term], list[Term]] | None:
    """What of an index is within the last axis, and what is in front of it.

    i in 0..12 over axes of 3 and 4: i becomes 4 a + b.
    """
    here: list[Term] = []
    front: list[Term] = []
    for name, factor in terms:
        extent = loops.extents[name]
        if factor % size == 0:
            front.append((name, factor // size))
        elif factor * (extent - 1) < size:
            here.append((name, factor))
        elif size % factor or extent % (size // factor):
            return None
        else:
            outer, inner = loops.cut(name, size // factor)
            front.append((outer, 1))
            here.append((inner, factor))
    reach = sum(factor * (loops.extents[name] - 1) for name, factor in here)
    return (here, front) if reach < size else None
