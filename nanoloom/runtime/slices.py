"""What each thread did in a timed run, as the compiled code notes it."""

from __future__ import annotations

import ctypes

import numpy as np

from nanoloom.runtime import layout

THREAD, STEP, BEGIN, END = range(4)  # columns


class Slices:
    """Room for slices: tasks of a step that a thread ran one after the other.

    address: of the struct that a run is given.
    """

    def __init__(self, room: int) -> None:
        self._rows = np.zeros((room, 4), np.int64)
        self._struct = layout.Slices(self._rows.ctypes.data, room, 0)
        self.address = ctypes.addressof(self._struct)

    @property
    def count(self) -> int:
        """Of the last run, those among them that found no room."""
        return int(self._struct.count)

    def rows(self) -> np.ndarray:
        """int64[slices, 4] of the last run: a number of the thread, the step, begin and
        end in nanoseconds from the run's begin."""
        return self._rows[: self.count].copy()
