"""Just enough ELF to put a model's parameters into a binary without reading them.

A linker would hold gigabytes in memory or write them twice: here it leaves room in the
library's addresses, and what is to lie there follows the library in its file.  Every
target is known by the header of another object.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

PAGE = 4096  # parameters begin on a page
PARAMETER_SECTION = ".nanoloom"
_CONTENT, _SYMBOLS, _STRINGS, _ROOM = 1, 2, 3, 8  # kinds of sections
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
SYMBOL = struct.Struct("<IBBHQQ")
_SEGMENT = struct.Struct("<IIQQQQQQ")


@dataclass(frozen=True)
class Machine:
    """What two objects must share to be linked: e_machine and e_flags."""

    number: int
    flags: int

    @classmethod
    def of(cls, code: bytes) -> Machine:
        """Read from an object file's first bytes; ValueError when it is no ELF64."""
        if code[:6] != b"\x7fELF\x02\x01" or len(code) < _HEADER.size:
            raise ValueError("not a little-endian 64-bit ELF object")
        fields = _HEADER.unpack_from(code)
        return cls(fields[2], fields[7])


@dataclass(frozen=True)
class Section:
    """Of an object.  size: of room that takes nothing of the file, in place of content;
    the other fields as ELF has them."""

    name: str
    kind: int
    content: bytes = b""
    flags: int = 0
    size: int = 0
    link: int = 0
    info: int = 0
    align: int = 1
    entry: int = 0


def empty_object(machine: Machine, symbol: str = "", size: int = 0) -> bytes:
    """An object whose `symbol` is room for `size` read-only bytes, page aligned.

    Without a symbol it is enough to make a shared library of a given name from.
    """
    symbols = SYMBOL.pack(0, 0, 0, 0, 0, 0)
    if symbol:
        is_global_object, hidden = 0x11, 2
        symbols += SYMBOL.pack(1, is_global_object, hidden, 1, 0, size)
    names = b"\0" + symbol.encode() + b"\0"
    allocated = 2
    return relocatable(
        machine,
        [
            Section(PARAMETER_SECTION, _ROOM, b"", allocated, size, align=PAGE),
            Section(
                ".symtab", _SYMBOLS, symbols, link=3, info=1, align=8,
                entry=SYMBOL.size,
            ),
            Section(".strtab", _STRINGS, names),
        ],
    )  # fmt: skip


def relocatable(machine: Machine, sections: Sequence[Section]) -> bytes:
    """An object of these sections, the first of which has number 1; their names are
    one more behind them."""
    title = ".shstrtab"
    names = "\0".join(["", *(x.name for x in sections), title]).encode() + b"\0"
    every = [*sections, Section(title, _STRINGS, names)]
    body = bytearray()
    headers = [_SECTION.pack(0, 0, 0, 0, 0, 0, 0, 0, 0, 0)]
    for x in every:
        body += bytes(-len(body) % 8)
        headers.append(
            _SECTION.pack(
                names.index(f"\0{x.name}\0".encode()) + 1, x.kind, x.flags, 0,
                _HEADER.size + len(body), x.size or len(x.content), x.link, x.info,
                x.align, x.entry,
            )
        )  # fmt: skip
        body += x.content
    body += bytes(-len(body) % 8)
    count = len(headers)
    head = _header(machine, _HEADER.size + len(body), count)
    return head + bytes(body) + b"".join(headers)


def _header(machine: Machine, section_offset: int, sections: int) -> bytes:
    is_relocatable, version, names = 1, 1, sections - 1
    return _HEADER.pack(
        b"\x7fELF\x02\x01\x01" + bytes(9),
        is_relocatable,
        machine.number,
        version,
        0,
        0,
        section_offset,
        machine.flags,
        _HEADER.size,
        0,
        0,
        _SECTION.size,
        sections,
        names,
    )


def with_room(code: bytes, size: int) -> bytes:
    """A linked library whose file may be followed by the `size` bytes it has room for.

    The last segment, which takes memory but nothing of the file, is told to be read
    from behind the library.
    """
    made = bytearray(code)
    header = _HEADER.unpack_from(made)
    first_segment, first_section = header[5], header[6]
    segments, sections = header[10], header[12]
    for at in range(first_segment, first_segment + segments * _SEGMENT.size, 56):
        kind, flags, _, address, _, filled, taken, align = _SEGMENT.unpack_from(
            made, at
        )
        loaded, read_only = 1, 4
        if (kind, flags, filled, taken) == (loaded, read_only, 0, size):
            offset = len(made) + (address - len(made)) % align
            _SEGMENT.pack_into(
                made, at, kind, flags, offset, address, address, size, size, align
            )
            break
    else:
        raise AssertionError("the linker has left no room")
    for at in range(first_section, first_section + sections * _SECTION.size, 64):
        section = list(_SECTION.unpack_from(made, at))
        if (section[1], section[3]) == (_ROOM, address):
            section[1], section[4] = _CONTENT, offset
            _SECTION.pack_into(made, at, *section)
    return bytes(made) + bytes(offset - len(made))


def with_content(code: bytes, size: int) -> bytes:
    """A relocatable object whose file may be followed by the `size` bytes of its room.

    The section that has taken memory but nothing of the file is told to be read from
    behind the object.
    """
    made = bytearray(code)
    header = _HEADER.unpack_from(made)
    first, count = header[6], header[12]
    offset = len(made) + -len(made) % PAGE
    for at in range(first, first + count * _SECTION.size, _SECTION.size):
        section = list(_SECTION.unpack_from(made, at))
        kind, flags, length = section[1], section[2], section[5]
        allocated = 2
        if (kind, flags, length) == (_ROOM, allocated, size):
            section[1], section[4] = _CONTENT, offset
            _SECTION.pack_into(made, at, *section)
            return bytes(made) + bytes(offset - len(made))
    raise AssertionError("the linker has left no room")
