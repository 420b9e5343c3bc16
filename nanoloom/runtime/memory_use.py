"""What programs take of memory: mapped files, working memory, and how much is there."""

from __future__ import annotations

import mmap
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nanoloom.runtime.library import Instance
from nanoloom.runtime.scattered_weights import ScatteredWeights

_PRESENT = np.uint64(1 << 63)  # of a page's word in /proc/self/pagemap
_MEGABYTE = 1e6


@dataclass(frozen=True)
class MemoryUse:
    """Bytes of a program; of several that share weights, these count once.

    weights: of parameters in memory or mapped from files.  code: of libraries, without
    the weights in them.  arena: of intermediate results, scratch: of threads beside
    them; both for each call that was under way at once.  resident: of weights, arena
    and scratch, what physical memory holds now; None where the system does not say.
    """

    weights: int
    code: int
    arena: int
    scratch: int
    resident: int | None

    @property
    def mapped(self) -> int:
        """Of all together: addresses, which take memory as they are first used."""
        return self.weights + self.code + self.arena + self.scratch

    def __str__(self) -> str:
        held = "unknown" if self.resident is None else _megabytes(self.resident)
        parts = ("weights", "code", "arena", "scratch")
        listed = ", ".join(f"{x} {_megabytes(getattr(self, x))}" for x in parts)
        return f"mapped {_megabytes(self.mapped)} ({listed}), resident {held}"

    def __repr__(self) -> str:
        return f"<nanoloom.MemoryUse: {self}>"


def memory_use(instances: Iterable[Instance]) -> MemoryUse:
    """Of loaded programs."""
    weights: dict[int, int] = {}
    code: dict[Path, int] = {}
    working: dict[int, int] = {}
    arena = scratch = 0
    for instance in instances:
        library = instance.library
        weights |= dict(parameters(instance))
        own = library.parameter_bytes if library.inner_parameters else 0
        code[library.path] = max(library.file_bytes - own, 0)
        arenas = list(instance.arenas)
        working |= {x.address: x.bytes for x in arenas}
        inner = sum(max(x.together, 1) for x in arenas) * library.arena_bytes
        arena += inner
        scratch += sum(x.bytes for x in arenas) - inner
    held = resident((weights | working).items())
    return MemoryUse(sum(weights.values()), sum(code.values()), arena, scratch, held)


def parameters(instance: Instance) -> Iterable[tuple[int, int]]:
    """Address and bytes of each piece of a program's parameters."""
    given, library = instance.parameters, instance.library
    if isinstance(given, ScatteredWeights):
        return [(piece.address, piece.size) for _, piece in given.pieces]
    if given is not None:
        return [(given.ctypes.data, given.nbytes)]
    if library.inner_parameters:
        return [(library.inner_parameters, library.parameter_bytes)]
    return []


def resident(ranges: Iterable[tuple[int, int]]) -> int | None:
    """Bytes of pages in physical memory; None where the system does not say.

    ranges: addresses and sizes.
    """
    page, total = mmap.PAGESIZE, 0
    try:
        with Path("/proc/self/pagemap").open("rb") as file:
            for address, size in ranges:
                first, last = address // page, -(-(address + size) // page)
                file.seek(8 * first)
                words = np.frombuffer(file.read(8 * (last - first)), np.uint64)
                if len(words) < last - first:
                    return None
                total += page * int(np.count_nonzero(words & _PRESENT))
    except OSError:
        return None
    return total


def _megabytes(count: int) -> str:
    return f"{count / _MEGABYTE:.1f} MB"
