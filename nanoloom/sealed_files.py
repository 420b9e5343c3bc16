"""Files that tell whether they are whole: they end in a digest of all that is before.

What reads such a file by its own format, as the system's loader does, sees no seal.
A seal for other machines has a second digest, which needs no package to be checked.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

from nanoloom import file_digest

MAGIC = b"nanoloom seal 1\n"
PORTABLE = b"nanoloom seal 2\n"
DIGITS = 2 * file_digest.DIGEST_BYTES
SEAL_BYTES = len(MAGIC) + DIGITS
PORTABLE_BYTES = SEAL_BYTES + DIGITS


def seal(file: BinaryIO, *, portable: bool = False) -> None:
    """Close the content of a file, open for reading too, with a seal.

    portable: for machines where BLAKE3 may not be installed.
    """
    file.flush()
    size = file.seek(0, os.SEEK_END)
    found = file_digest.of_descriptor(file.fileno(), size)
    if portable:
        found += file_digest.portable(file.fileno(), size)
    file.write((PORTABLE if portable else MAGIC) + found.encode())
    file.flush()


def is_whole(path: Path) -> bool | None:
    """Whether a file has the content that was sealed; None where it has no seal.

    Raises OSError for a file that cannot be read.
    """
    with file_digest.opened(path) as descriptor:
        return is_whole_file(descriptor)


def is_whole_file(descriptor: int) -> bool | None:
    """The same of an open file."""
    kinds = ((MAGIC, SEAL_BYTES), (PORTABLE, PORTABLE_BYTES))
    for magic, length in kinds if file_digest.has_blake3() else kinds[1:]:
        size = os.fstat(descriptor).st_size - length
        found = os.pread(descriptor, length, size) if size >= 0 else b""
        if found.startswith(magic):
            return is_of(descriptor, size, found[len(magic) :].decode(errors="replace"))
    return None


def is_of(descriptor: int, size: int, digests: str) -> bool:
    """Whether one digest, or the one of two that is known here, is that of a file's
    first bytes."""
    if file_digest.has_blake3():
        return digests[:DIGITS] == file_digest.of_descriptor(descriptor, size)
    return digests[DIGITS:] == file_digest.portable(descriptor, size)
