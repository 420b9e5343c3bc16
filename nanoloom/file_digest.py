"""Digests of files' bytes: BLAKE3, and one that Python itself computes.

The second is for machines that only run programs, where BLAKE3 need not be installed:
BLAKE2b of the BLAKE2b of each part, by a few threads, at a fifth of the speed.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

try:
    from blake3 import blake3
except ImportError:
    blake3 = None

PART_BYTES = 16 << 20  # enough for all threads of BLAKE3 at once
LEAF_BYTES = 1 << 20  # of a file, for one BLAKE2b: part of what a digest means
DIGEST_BYTES = 32
THREADS = 4  # whatever there is: few files are so large


@contextmanager
def opened(path: Path | str) -> Generator[int]:
    """The descriptor of a file to read; OSError for what is none: pipes make wait."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "is no file", str(path))
        yield descriptor
    finally:
        os.close(descriptor)


def threads() -> int:
    """How many hash at once, as BLAKE3 takes it."""
    return _threads


def has_blake3() -> bool:
    """Whether its package is installed."""
    return blake3 is not None


def of_descriptor(descriptor: int, size: int | None = None) -> str:
    """BLAKE3 of an open file's first `size` bytes, of all where none is given.

    Read and hashed by all threads, a part in memory at a time.
    """
    assert blake3 is not None, "asked for where BLAKE3 is not installed"
    hasher = blake3(max_threads=_threads)
    rest = os.fstat(descriptor).st_size if size is None else size
    part, done = memoryview(bytearray(min(PART_BYTES, rest))), 0
    while rest and (count := os.preadv(descriptor, [part[:rest]], done)):
        hasher.update(part[:count])
        done, rest = done + count, rest - count
    return hasher.hexdigest()


def portable(descriptor: int, size: int) -> str:
    """What Python computes of an open file's first `size` bytes."""

    def leaf(begin: int) -> bytes:
        part = os.pread(descriptor, min(LEAF_BYTES, size - begin), begin)
        return hashlib.blake2b(part, digest_size=DIGEST_BYTES).digest()

    begins = range(0, size, LEAF_BYTES)
    whole = hashlib.blake2b(str(size).encode(), digest_size=DIGEST_BYTES)
    if len(begins) < THREADS:
        leaves = list(map(leaf, begins))
    else:
        with ThreadPoolExecutor(THREADS) as pool:
            leaves = list(pool.map(leaf, begins))
    for each in leaves:
        whole.update(each)
    return whole.hexdigest()


_threads = blake3.AUTO if blake3 is not None else 1


def _hash_alone() -> None:
    """A forked child has the hasher's pool of threads, but none of the threads: it
    would wait for them for ever."""
    global _threads
    _threads = 1


os.register_at_fork(after_in_child=_hash_alone)
