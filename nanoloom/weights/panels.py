"""Weights in the order in which a nanokernel reads them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nanoloom.weights.chunked_conversion import Array, Stored
from nanoloom.weights.weight import Derivation, Shape

WORD = 4  # bytes of bits


@dataclass(frozen=True)
class Panels(Derivation):
    """logical [...] -> [shared..., panels, reduced..., columns], zeros at the edges.

    shared, column, reduced: the dimensions by role.
    group: so many steps of the last reduced dimension lie together (VNNI: 2 for bf16,
    4 for int8): [..., reduced / group, columns * group].
    steps: zeros fill up the last reduced dimension to a multiple of so many groups.
    sums: unless 0, a panel of bytes ends with a step more, for every column the sum of
    its numbers times this, as 32 bits (modulo 2^32); zeros but in the first of the
    outer reduced dimensions.
    bits: unless 0, integers become such of so many bits; sums are those of products
    then: of every second group's numbers by those of the group behind it.
    differences: whether a group of eight bytes is two words of bits: those of all
    columns, then where each column's second word is another than its first.  Sums are
    the numbers of those places.
    """

    shared: tuple[int, ...]
    column: int
    reduced: tuple[int, ...]
    columns: int
    group: int = 1
    sums: int = 0
    steps: int = 1
    bits: int = 0
    differences: bool = False

    @property
    def cuts(self) -> tuple[tuple[int, ...], int]:
        return (*self.shared, self.column), self.columns

    def shape(self, given: Shape) -> Shape:
        panels = -(-given[self.column] // self.columns)
        reduced = [given[d] for d in self.reduced]
        whole = -(-reduced[-1] // (self.group * self.steps))
        reduced[-1] = whole * self.steps + bool(self.sums)
        lead = [given[d] for d in self.shared]
        return (*lead, panels, *reduced, self.columns * self.group)

    def dtype(self, given: np.dtype) -> np.dtype:
        return np.dtype(f"int{self.bits}") if self.bits else given

    def of(self, array: Stored) -> Array:
        """A packed copy."""
        array = np.asarray(array)
        shape = self.shape(array.shape)
        steps = shape[-2] - bool(self.sums)
        moved = array.transpose((*self.shared, self.column, *self.reduced))
        at = len(self.shared)
        wanted = (*moved.shape[:at], shape[at] * self.columns, *moved.shape[at + 1 :])
        wanted = (*wanted[:-1], steps * self.group)
        extra = [(0, w - m) for w, m in zip(wanted, moved.shape, strict=True)]
        if any(after for _, after in extra):
            moved = np.pad(moved, extra)
        split = moved.reshape(
            *moved.shape[:at],
            shape[at],
            self.columns,
            *moved.shape[at + 1 : -1],
            steps,
            self.group,
        )
        lanes = np.moveaxis(split, at + 1, -2)  # [..., reduced, columns, group]
        if self.differences:
            lanes = in_words(lanes)
        packed = np.ascontiguousarray(lanes).reshape(*shape[:-2], steps, shape[-1])
        packed = packed.astype(self.dtype(packed.dtype), copy=False)
        return self.with_sums(packed) if self.sums else packed

    def with_sums(self, packed: Array) -> Array:
        """Panels with their columns' sums as a last step."""
        reduced = range(len(self.shared) + 1, packed.ndim - 1)
        added = self.numbers(packed).sum((*reduced, -1), dtype=np.int64) * self.sums
        last = np.zeros((*packed.shape[:-2], 1, packed.shape[-1]), packed.dtype)
        panels = last.reshape(*added.shape[:-1], -1, packed.shape[-1])
        words = added.astype(np.int32).view(packed.dtype)
        panels[..., 0, : words.shape[-1]] = words
        return np.concatenate([packed, last], axis=-2)

    def numbers(self, packed: Array) -> Array:
        """What is added up for each column: [..., columns, number]."""
        if self.bits:
            *outer, steps, _ = packed.shape
            groups = packed.reshape(*outer, steps // 2, 2, self.columns, self.group)
            return groups.astype(np.int64).prod(-3)
        if not self.differences:
            return packed.reshape(*packed.shape[:-1], self.columns, self.group)
        words = packed.reshape(*packed.shape[:-1], 2, self.columns, WORD)
        return np.bitwise_count(words[..., 1, :, :])


def in_words(lanes: Array) -> Array:
    """[..., columns, two words] -> [..., first or where they differ, columns, word]."""
    words = lanes.reshape(*lanes.shape[:-1], 2, WORD)
    first, second = words[..., 0, :], words[..., 1, :]
    return np.stack([first, first ^ second], axis=-3)
