"""Files that tell whether they are whole: they end in a digest of all that is before.

What reads such a file by its own format, as the system's loader does, sees no seal.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

from nanoloom.cache import digest

MAGIC = b"nanoloom seal 1\n"
SEAL_BYTES = len(MAGIC) + 64


def seal(file: BinaryIO) -> None:
    """Close the content of a file, open for reading too, with a seal."""
    file.flush()
    size = file.seek(0, os.SEEK_END)
    file.write(MAGIC + digest.of_descriptor(file.fileno(), size).encode())
    file.flush()


def is_whole(path: Path) -> bool | None:
    """Whether a file has the content that was sealed; None where it has no seal.

    Raises OSError for a file that cannot be read.
    """
    with digest.opened(path) as descriptor:
        return is_whole_file(descriptor)


def is_whole_file(descriptor: int) -> bool | None:
    """The same of an open file."""
    size = os.fstat(descriptor).st_size - SEAL_BYTES
    if size < 0:
        return None
    found = os.pread(descriptor, SEAL_BYTES, size)
    if not found.startswith(MAGIC):
        return None
    return found == MAGIC + digest.of_descriptor(descriptor, size).encode()
