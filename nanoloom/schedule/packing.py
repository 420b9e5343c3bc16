"""Weights in the order the nanokernel reads them, made while compiling."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Packing:
    """logical [...] -> [shared..., panels, reduced..., columns], zeros at the edges.

    argument: which kernel argument.  shared, column, reduced: its dimensions by role.
    group: so many steps of the last reduced dimension lie together (VNNI: 2 for bf16,
    4 for int8): [..., reduced / group, columns * group].
    """

    argument: int
    shared: tuple[int, ...]
    column: int
    reduced: tuple[int, ...]
    columns: int
    group: int = 1

    def shape(self, logical: tuple[int, ...]) -> tuple[int, ...]:
        panels = -(-logical[self.column] // self.columns)
        reduced = [logical[d] for d in self.reduced]
        reduced[-1] = -(-reduced[-1] // self.group)
        lead = [logical[d] for d in self.shared]
        return (*lead, panels, *reduced, self.columns * self.group)

    def pack(self, array: np.ndarray) -> np.ndarray:
        """The packed copy of a weight."""
        shape = self.shape(array.shape)
        moved = array.transpose((*self.shared, self.column, *self.reduced))
        at = len(self.shared)
        wanted = (*moved.shape[:at], shape[at] * self.columns, *moved.shape[at + 1 :])
        wanted = (*wanted[:-1], shape[-2] * self.group)
        extra = [(0, w - m) for w, m in zip(wanted, moved.shape, strict=True)]
        if any(after for _, after in extra):
            moved = np.pad(moved, extra)
        split = moved.reshape(
            *moved.shape[:at],
            shape[at],
            self.columns,
            *moved.shape[at + 1 : -1],
            shape[-2],
            self.group,
        )
        lanes = np.moveaxis(split, at + 1, -2)  # [..., reduced, columns, group]
        return np.ascontiguousarray(lanes).reshape(shape)
