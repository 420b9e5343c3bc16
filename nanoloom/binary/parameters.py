"""The parameters of a program: every weight once, packed as its kernel reads it."""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from io import SEEK_END, RawIOBase
from pathlib import Path
from typing import BinaryIO

import numpy as np

from nanoloom.linalg.stage import Parameter
from nanoloom.linalg.words.pieces import Stored
from nanoloom.linalg.words.tensor import Array
from nanoloom.schedule.packing import Packing

ALIGNMENT = 64
PIECE = 32 << 20  # bytes of a weight in memory at once; reads whole pages of its rows


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
        """Write the block as a file."""
        with path.open("wb", buffering=0) as file:
            self.append_to(file)

    def append_to(self, file: RawIOBase | BinaryIO) -> None:
        """Write the block at a file's end: a piece of a weight is in memory at once."""
        start = file.seek(0, SEEK_END)
        for entry, offset in self.entries.items():
            parameter = self.parameters[entry.parameter]
            file.seek(start + offset)
            for piece in stored(entry, parameter.load()):
                write_all(file, piece.reshape(-1).view(np.uint8).data)
            parameter.release()
        file.truncate(start + self.size)


def stored(entry: Entry, array: Stored) -> Generator[Array]:
    """The bytes of an entry, in arrays that follow each other."""
    if entry.packing is None:
        for piece in pieces(array, range(array.ndim), 1):
            yield np.ascontiguousarray(piece)
        return
    packing = entry.packing
    outer = (*packing.shared, packing.column)
    for piece in pieces(array.reshape(entry.shape), outer, packing.columns):
        yield packing.pack(np.asarray(piece))


def pieces(array: Stored, dims: Sequence[int], step: int) -> Generator[Stored]:
    """Parts of an array of about PIECE bytes, cut along its outermost dimensions.

    dims: which those are, in this order; the last is cut at multiples of `step`.
    """
    if not dims or array.nbytes <= PIECE:
        yield array
        return
    dim, *inner = dims
    extent = array.shape[dim]
    least = 1 if inner else step
    many = max(PIECE // (array.nbytes // extent) // least, 1) * least
    for start in range(0, extent, many):
        part = array[(slice(None),) * dim + (slice(start, start + many),)]
        yield from pieces(part, inner, step)


def write_all(file: RawIOBase | BinaryIO, data: memoryview) -> None:
    """Write past Python's buffers, as many calls as the system wants."""
    while data:
        data = data[file.write(data) :]
