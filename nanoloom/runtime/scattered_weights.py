"""Parameters that lie in several places, for a program that was made for one block."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from nanoloom.interface.tensor import Space
from nanoloom.runtime import layout
from nanoloom.runtime.arrays import address
from nanoloom.runtime.mapping import Mapping

# struct nanoloom_buffer
BUFFER = np.dtype([("space", np.int32), ("index", np.int32), ("offset", np.int64)])


class RelocatedWeights(layout.Program):
    """A program with buffers of its own: what lies in the parameters has an address."""

    moved: np.ndarray


@dataclass(frozen=True)
class ScatteredWeights:
    """Memory, and where each piece begins in the block, the first one first."""

    pieces: Sequence[tuple[int, Mapping]]

    def seen_by(self, program: Any) -> Any:
        """The program (a pointer, as what is given) that finds its parameters there.

        It is to be called with parameters at address 0.  The pieces have to stay.
        """
        made = RelocatedWeights.from_buffer_copy(program.contents)
        made.moved = self._moved(made)
        made.buffers = made.moved.ctypes.data
        return ctypes.pointer(made)  # and keeps it

    def _moved(self, program: layout.Program) -> np.ndarray:
        """The program's buffers, their places in the block now those in memory."""
        size = int(program.buffer_count) * BUFFER.itemsize
        buffers = np.frombuffer(ctypes.string_at(program.buffers, size), BUFFER).copy()
        inside = buffers["space"] == Space.PARAMETERS
        offsets = buffers["offset"][inside]
        begins = np.array([begin for begin, _ in self.pieces], np.int64)
        places = np.array([piece.address for _, piece in self.pieces], np.int64)
        piece = np.searchsorted(begins, offsets, "right") - 1
        buffers["offset"][inside] = offsets - begins[piece] + places[piece]
        return buffers


Parameters: TypeAlias = np.ndarray | ScatteredWeights | None  # None: in the library


def parameter_address(
    size: int, inner: int | None, parameters: Parameters
) -> int | None:
    """Where the parameters of a program begin; None where they lie in several places.

    size: in bytes.  inner: of those in the library.  Raises ValueError for others.
    """
    if parameters is None:
        if size and not inner:
            raise ValueError("the library needs its parameters")
        return inner
    if isinstance(parameters, ScatteredWeights):
        return None
    if parameters.nbytes != size:
        raise ValueError(f"{parameters.nbytes} bytes of parameters, not {size}")
    start = address(parameters)
    if not parameters.flags.c_contiguous or start % 64:
        raise ValueError("parameters must be contiguous and 64-byte aligned")
    return start
