"""What a library says of itself, read from its file: none of its code runs.

format: of the file, which has to be the one that this nanoloom reads.
nanoloom: the version that compiled it.
model: its name, and the digest of its files.
precision: of its arithmetic.
targets: that it has code for, the least first.
inputs, outputs: name, element type and shape of each; a size at run time is written as
an expression of the dimensions.
strings: that the code has numbers for, in their order; which inputs and outputs hold
such.
dimensions: that a caller has numbers for, and what each may be.
session: whether it keeps keys and values between calls.
parameter_bytes: of the weights inside.
"""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path
from typing import Any

from nanoloom import file_digest

FORMAT = 15  # NANOLOOM_LIBRARY_VERSION: a library is read by its own format alone
SECTION = ".nanoloom.manifest"
HEADER = struct.Struct("<16sHHIQQQIHHHHHH")  # of an ELF file
ENTRY = struct.Struct("<IIQQQQIIQQ")  # of its table of sections
MOST_BYTES = 1 << 24  # of a manifest, and of the names of sections


def read(path: Path) -> dict[str, Any] | None:
    """The manifest of a library; None for a file that has none.

    Raises OSError for a file that cannot be read.
    """
    with file_digest.opened(path) as file:
        try:
            content = section(file)
            return None if content is None else json.loads(content)
        except (struct.error, ValueError):
            return None


def section(file: int) -> bytes | None:
    """The bytes of the section, None where there is none.

    Raises struct.error or ValueError for a file that is damaged.
    """
    header = HEADER.unpack(os.pread(file, HEADER.size, 0))
    if header[0][:6] != b"\x7fELF\x02\x01":
        return None
    first, count, names = header[6], header[12], header[13]
    table = os.pread(file, count * ENTRY.size, first)
    entries = list(ENTRY.iter_unpack(table))
    if names >= len(entries):
        return None
    named = content(file, entries[names])
    for entry in entries:
        end = named.find(b"\0", entry[0])
        if named[entry[0] : end] == SECTION.encode():
            return content(file, entry)
    return None


def content(file: int, entry: tuple[int, ...]) -> bytes:
    """The bytes of a section; ValueError for more than any has."""
    if entry[5] > MOST_BYTES:
        raise ValueError("a section is too large")
    return os.pread(file, entry[5], entry[4])
