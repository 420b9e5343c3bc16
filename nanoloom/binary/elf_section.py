"""One section more for a linked library: bytes that nothing loads, but tools show."""

from __future__ import annotations

import os
from typing import BinaryIO

from nanoloom.manifest import ENTRY, HEADER, SECTION

CONTENT = 1  # SHT_PROGBITS
ALIGNMENT = 8  # of the table


def append(file: BinaryIO, code: bytes, content: bytes) -> None:
    """Give a library one section more, at the end of its file.

    file: begins with `code`, which has the table of sections, and ends with what the
    library loads.  A table anew and the names of the sections come last; nothing else
    moves.
    """
    header = list(HEADER.unpack_from(code))
    first, count, names = header[6], header[12], header[13]
    entries = [
        list(ENTRY.unpack_from(code, first + n * ENTRY.size)) for n in range(count)
    ]
    begin, length = entries[names][4], entries[names][5]
    table = code[begin : begin + length] + SECTION.encode() + b"\0"
    at = file.seek(0, os.SEEK_END)
    entries[names][4:6] = at, len(table)
    here = at + len(table)
    entries.append([length, CONTENT, 0, 0, here, len(content), 0, 0, 1, 0])
    end = here + len(content)
    file.write(table + content + bytes(-end % ALIGNMENT))
    header[6], header[12] = end + -end % ALIGNMENT, len(entries)
    file.write(b"".join(ENTRY.pack(*entry) for entry in entries))
    file.seek(0)
    file.write(HEADER.pack(*header))
    file.seek(0, os.SEEK_END)
