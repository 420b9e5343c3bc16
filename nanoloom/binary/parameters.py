"""The parameters of a program: every weight once, packed as its kernel reads it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from nanoloom.linalg.stage import Parameter
from nanoloom.schedule.packing import Packing

ALIGNMENT = 64


@dataclass(frozen=True)
class Entry:
    """One array of the block: a parameter, the shape in its kernel, its packing."""

    parameter: int
    shape: tuple[int, ...]
    packing: Packing | None


@dataclass
class ParameterBlock:
    """Offsets of the arrays in one aligned block of bytes."""

    parameters: Sequence[Parameter]
    entries: dict[Entry, int] = field(default_factory=dict)
    size: int = 0

    def offset(
        self, parameter: int, shape: tuple[int, ...], packing: Packing | None
    ) -> int:
        """Where this form of a parameter lies; it gets its place when first asked for.

        Without a packing the shape does not matter: the bytes are the same.
        """
        given = shape if packing is not None else ()
        entry = Entry(parameter, given, packing)
        if entry not in self.entries:
            self.entries[entry] = self.size
            stored = (
                packing.shape(shape) if packing else self.parameters[parameter].shape
            )
            size = math.prod(stored) * self.parameters[parameter].dtype.itemsize
            self.size += -(-max(size, 1) // ALIGNMENT) * ALIGNMENT
        return self.entries[entry]

    def write(self, path: Path) -> None:
        """Write the block; one weight at a time is in memory."""
        with path.open("wb") as file:
            for entry, offset in self.entries.items():
                parameter = self.parameters[entry.parameter]
                array = parameter.load()
                if entry.packing is not None:
                    array = entry.packing.pack(array.reshape(entry.shape))
                file.seek(offset)
                file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
                parameter.release()
            file.truncate(self.size)
