"""The parameters of a program: every weight once, packed as its kernel reads it."""

from __future__ import annotations

from dataclasses import dataclass, field
from io import SEEK_END, RawIOBase
from pathlib import Path
from typing import BinaryIO

import numpy as np

from nanoloom.weights.derivations import flat
from nanoloom.weights.weight import Weight

ALIGNMENT = 64


@dataclass
class ParameterBlock:
    """Offsets of the weights in one aligned block of bytes.

    walked: the weights that a run reads from end to end, not as a table.
    """

    entries: dict[Weight, int] = field(default_factory=dict[Weight, int])
    walked: set[Weight] = field(default_factory=set[Weight])
    size: int = 0

    def offset(self, weight: Weight, *, walked: bool = True) -> int:
        """Where a weight lies; it gets its place when first asked for."""
        entry = flat(weight)
        if walked:
            self.walked.add(entry)
        if entry not in self.entries:
            self.entries[entry] = self.size
            self.size += -(-max(entry.nbytes, 1) // ALIGNMENT) * ALIGNMENT
        return self.entries[entry]

    def write(self, path: Path) -> None:
        """Write the block as a file."""
        with path.open("wb", buffering=0) as file:
            self.append_to(file)

    def append_to(self, file: RawIOBase | BinaryIO) -> None:
        """Write the block at a file's end: a piece of a weight is in memory at once."""
        start = file.seek(0, SEEK_END)
        for weight, offset in self.entries.items():
            file.seek(start + offset)
            write_weight(file, weight)
        file.truncate(start + self.size)


def write_weight(
    file: RawIOBase | BinaryIO, weight: Weight, most: int | None = None
) -> None:
    """Write a weight where the file stands, and give back what reading it took.

    most: bytes at a time, where fewer than there are.
    """
    for piece in weight.written():
        write_all(file, piece.reshape(-1).view(np.uint8).data, most)
    weight.source.release()


def write_all(
    file: RawIOBase | BinaryIO, data: memoryview, most: int | None = None
) -> None:
    """Write past Python's buffers, as many calls as the system wants."""
    while data:
        data = data[file.write(data[:most]) :]
