"""Axes of two shapes of the same elements, in the smallest groups that are the same.

    [6, 5, 7]  and  [2, 3, 5, 7]:   6 and 2 x 3,  5 and 5,  7 and 7

What goes over all elements of a group alike goes over them in either shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

Shape: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class Regrouping:
    """A Reshape of the axes that an operation goes over."""

    before: Shape
    after: Shape

    def of(self, shape: Shape) -> Shape | None:
        """What an operand's shape becomes; None where it has a part of a group.

        An operand has fewer axes, or axes of 1, where it is the same all along.
        """
        if shape == self.before:
            return self.after
        if set(shape) <= {1} and len(shape) <= len(self.after):
            return shape
        found = groups(self.before, self.after)
        if found is None or len(shape) > len(self.before):
            return None
        whole = (1,) * (len(self.before) - len(shape)) + shape
        made = [1] * len(self.after)
        for mine, theirs in found:
            if all(whole[i] == self.before[i] for i in mine):
                for j in theirs:
                    made[j] = self.after[j]
            elif any(whole[i] != 1 for i in mine):
                return None
        while made and made[0] == 1 and len(shape) < len(self.before):
            del made[0]
        return tuple(made)


@dataclass(frozen=True)
class CommuteTranspose:
    """The shape before the transpose, and the transpose's order."""

    shape: Shape
    order: tuple[int, ...]


def regroup_axes(
    shape: Sequence[int], order: Sequence[int], wanted: Sequence[int]
) -> CommuteTranspose | None:
    """How `wanted`, a reshape of shape[order], is made of `shape` by a reshape first.

    None where no reshape does it: what becomes one axis must lie side by side.  Axes of
    extent 1 lie beside any others.
    """
    turned = [shape[d] for d in order]
    pairs = groups(turned, wanted)
    if pairs is None:
        return None
    found: list[tuple[int, list[int]]] = []  # first axis of `shape`, axes of `wanted`
    for mine, theirs in pairs:
        axes = [order[i] for i in mine if turned[i] != 1]
        between = axes and [d for d in range(axes[0], axes[-1] + 1) if shape[d] != 1]
        if axes and axes != between:
            return None
        alone = min((order[i] for i in mine), default=-1)
        found.append((axes[0] if axes else alone, theirs))
    sorted_axes = [d for _, theirs in sorted(found, key=first) for d in theirs]
    back = tuple(sorted_axes.index(d) for d in range(len(wanted)))
    return CommuteTranspose(tuple(wanted[d] for d in sorted_axes), back)


def first(group: tuple[int, list[int]]) -> int:
    return group[0]


def groups(
    one: Sequence[int], other: Sequence[int]
) -> list[tuple[list[int], list[int]]] | None:
    """Axes of two shapes of as many elements, the fewest whose products are equal.

    None for shapes without elements.
    """
    if 0 in one or 0 in other:
        return None
    found: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(one) or j < len(other):
        mine, theirs, left, right = [], [], 1, 1
        while True:
            if i < len(one) and (left < right or not mine):
                left *= one[i]
                mine.append(i)
                i += 1
            elif j < len(other) and (right < left or not theirs):
                right *= other[j]
                theirs.append(j)
                j += 1
            else:
                break
        if left != right:
            return None
        found.append((mine, theirs))
    return found
