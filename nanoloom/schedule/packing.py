"""Weights in the order the nanokernel reads them, made while compiling."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Packing:
    """logical [...] -> [shared..., panels, reduced..., columns], zeros in the last panel.

    argument: which kernel argument.  shared, column, reduced: its dimensions by role.
    """

    argument: int
    shared: tuple[int, ...]
    column: int
    reduced: tuple[int, ...]
    columns: int

    def shape(self, logical: tuple[int, ...]) -> tuple[int, ...]:
        panels = -(-logical[self.column] // self.columns)
        return (
            *[logical[d] for d in self.shared],
            panels,
            *[logical[d] for d in self.reduced],
            self.columns,
        )

    def pack(self, array: np.ndarray) -> np.ndarray:
        """The packed copy of a weight."""
        shape = self.shape(array.shape)
        order = (*self.shared, self.column, *self.reduced)
        moved = array.transpose(order)
        at = len(self.shared)
        panels, extra = shape[at], shape[at] * self.columns - moved.shape[at]
        if extra:
            widths = [(0, extra if d == at else 0) for d in range(moved.ndim)]
            moved = np.pad(moved, widths)
        split = moved.reshape(
            *moved.shape[:at], panels, self.columns, *moved.shape[at + 1 :]
        )
        return np.ascontiguousarray(np.moveaxis(split, at + 1, -1))
