"""A program whose large weights are files of their own, which others have, too."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from nanoloom.binary.assemble import Compiled
from nanoloom.binary.parameters import ALIGNMENT, ParameterBlock, write_weight
from nanoloom.binary.table import Buffer, ProgramTable
from nanoloom.interface.tensor import Space
from nanoloom.weights.weight import Source, Weight
from nanoloom.weights.weight_keys import weight_key

LARGE = 64 << 10  # bytes: smaller ones are not worth a file and its pages


@dataclass(frozen=True)
class Placed:
    """A program as its folder has it.

    small: the weights at the front of the block.  large: the others by their names in
    the cache, and where they begin.  walked: those that a run reads from end to end.
    """

    objects: list[bytes]
    table: ProgramTable
    small: ParameterBlock
    large: dict[str, tuple[int, Weight]]
    walked: frozenset[str]

    def listed(self) -> list[tuple[str, int, int, bool]]:
        """(name, where it begins, bytes, whether it is walked) of each large weight."""
        return [
            (name, at, w.nbytes, name in self.walked)
            for name, (at, w) in self.large.items()
        ]

    def write_small(self, path: Path) -> None:
        self.small.write(path)

    def write_large(self, name: str, file: BinaryIO) -> None:
        """Write a large weight, a piece in memory at a time.

        What Linux gets at once lies together in memory later, and comes as a whole when
        a part of it is read: of a table, little at once.
        """
        most = None if name in self.walked else LARGE
        write_weight(file, self.large[name][1], most)


def placed(compiled: Compiled) -> Placed:
    """The program with its small weights in front of the large ones."""
    entries = compiled.parameters.entries
    small = ParameterBlock()
    moved = {at: small.offset(w) for w, at in entries.items() if w.nbytes < LARGE}
    end, contents = small.size, dict[Source, str]()
    large, walked = dict[str, tuple[int, Weight]](), set[str]()
    for weight, at in entries.items():
        if weight.nbytes < LARGE:
            continue
        name = weight_key(weight, contents)
        if name not in large:  # of sources that are equal, but not the same
            large[name] = end, weight
            end += -(-weight.nbytes // ALIGNMENT) * ALIGNMENT
        if weight in compiled.parameters.walked:
            walked.add(name)
        moved[at] = large[name][0]
    table = relocated(compiled.table, moved, end)
    return Placed(compiled.objects, table, small, large, frozenset(walked))


def relocated(table: ProgramTable, moved: dict[int, int], size: int) -> ProgramTable:
    """The table of a program whose weights lie elsewhere.

    moved: where each begins now, by where it began; what lies in one stays in it.
    """
    begins = sorted(moved)

    def place(buffer: Buffer) -> Buffer:
        if buffer.space is not Space.PARAMETERS:
            return buffer
        begin = begins[bisect_right(begins, buffer.offset) - 1]
        return replace(buffer, offset=moved[begin] + buffer.offset - begin)

    return replace(table.with_buffers(place), parameter_bytes=size)
