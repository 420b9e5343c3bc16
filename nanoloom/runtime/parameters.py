"""A program's parameters in memory: large weights are pages of files, to be shared."""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from weakref import WeakValueDictionary

from nanoloom import sealed_files
from nanoloom.cache import Cache
from nanoloom.errors import Error
from nanoloom.file_digest import opened
from nanoloom.runtime.mapping import Mapping
from nanoloom.runtime.scattered_weights import ScatteredWeights

PARAMETERS, WEIGHTS = "parameters.bin", "weights.json"  # files of a program's folder
# Names of large weights, where each begins in the block, bytes, and whether a run reads
# it from end to end, not as a table.
Listed = list[tuple[str, int, int, bool]]
Identity = tuple[int, int, int, int]

# Files that were found whole, for as long as somebody has them mapped.
_mapped: WeakValueDictionary[Identity, Mapping] = WeakValueDictionary()


@dataclass(frozen=True)
class Weights:
    """Where large weights are kept, and who makes one that is not there.

    write: called with its name and a file.
    """

    cache: Cache
    write: Callable[[str, BinaryIO], None]


def write_listed(folder: Path, large: Listed) -> None:
    """Write which weights a program has behind its small ones."""
    (folder / WEIGHTS).write_text(json.dumps(large))


def load_parameters(folder: Path, weights: Weights) -> ScatteredWeights:
    """The parameters of the program in a folder.

    Large weights are mapped from the cache: every program with the same ones, in this
    process and in others, reads the same memory.  They lie on huge pages where the
    file system has such: runs walk through them, and translating the addresses of small
    pages costs up to a tenth of a matrix product.  Of tables, as those of words, only
    what is looked up comes into memory.
    """
    listed: Listed = json.loads((folder / WEIGHTS).read_text())
    give_back_heap()
    pieces: list[tuple[int, Mapping]] = []
    with opened(folder / PARAMETERS) as descriptor:
        if size := os.fstat(descriptor).st_size:
            pieces.append((0, Mapping.copied(descriptor, size)))
    for name, begin, size, walked in listed:
        piece = weight(name, size, weights)
        if walked:
            piece.walk()
        pieces.append((begin, piece))
    return ScatteredWeights(pieces)


def weight(name: str, size: int, weights: Weights) -> Mapping:
    """A large weight of so many bytes, in memory as often as in the cache: once."""
    found: list[Mapping] = []

    def use(descriptor: int) -> bool:
        try:
            found[:] = [whole(descriptor, size)]
        except Error:
            return False
        return True

    weights.cache.file(name, lambda file: weights.write(name, file), use)
    return found[0]


def whole(descriptor: int, size: int) -> Mapping:
    """A file's first bytes in memory; raises Error if they are not what was written."""
    if (known := _mapped.get(identity(descriptor))) and known.size == size:
        return known
    try:
        made, shared = Mapping.of(descriptor, size), True
    except OSError:  # a file system without mappings, or too many of them
        made, shared = Mapping.copied(descriptor, size), False
    if not sealed_files.is_whole_file(descriptor):
        raise Error("a weight is damaged")
    if shared:
        _mapped[identity(descriptor)] = made
    return made


def identity(descriptor: int) -> Identity:
    """Of an open file with its content, as long as somebody keeps the inode."""
    now = os.fstat(descriptor)
    return now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns


def give_back_heap() -> None:
    """What compiling has freed goes back to the system first: the peak is lower."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc alone
    if trim is not None:
        trim(0)
