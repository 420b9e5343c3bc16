"""How many bytes a cache has, as all processes count that write into it.

A file of numbers: the bytes at the last look at all entries, and those of each that was
written since.  Where it is missing or damaged, it is time for a look.
"""

from __future__ import annotations

import os
import struct
from contextlib import suppress
from pathlib import Path

NUMBER = struct.Struct("<Q")
MAGIC = b"written\n"


def add(path: Path, size: int) -> None:
    """Count one more entry, if there is such a file."""
    with suppress(OSError):
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
        try:
            os.write(descriptor, NUMBER.pack(size))
        finally:
            os.close(descriptor)


def counted(path: Path) -> tuple[int, int] | None:
    """The bytes in all, and those since the last look."""
    try:
        data = path.read_bytes()
        if not data.startswith(MAGIC):
            return None
        before, *since = (n for (n,) in NUMBER.iter_unpack(data[len(MAGIC) :]))
    except (OSError, ValueError, struct.error):
        return None
    return before + sum(since), sum(since)


def begin(path: Path, total: int, draft: Path) -> None:
    """Count from here on; the cache has so many bytes."""
    with suppress(OSError):
        draft.write_bytes(MAGIC + NUMBER.pack(total))
        os.replace(draft, path)
