"""Just enough ELF to put a model's parameters into a binary without reading them.

A linker would hold gigabytes in memory or write them twice: here it leaves room in the
library's addresses, and what is to lie there follows the library in its file.  Every
target is known by the header of another object.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

PAGE = 4096  # parameters begin on a page
PARAMETER_SECTION = ".nanoloom"
_CONTENT, _SYMBOLS, _STRINGS, _ROOM = 1, 2, 3, 8  # kinds of sections
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
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


def empty_object(machine: Machine, symbol: str = "", size: int = 0) -> bytes:
    """An object whose `symbol` is room for `size` read-only bytes, page aligned.

    Without a symbol it is enough to make a shared library of a given name from.
    """
    names = ["", PARAMETER_SECTION, ".symtab", ".strtab", ".shstrtab"]
    name_table = "\0".join(names).encode() + b"\0"
    at = [name_table.index(f"{name}\0".encode()) for name in names]
    symbols = _SYMBOL.pack(0, 0, 0, 0, 0, 0)
    if symbol:
        is_global_object, hidden = 0x11, 2
        symbols += _SYMBOL.pack(1, is_global_object, hidden, 1, 0, size)
    strings = b"\0" + symbol.encode() + b"\0"
    symbols_at = _HEADER.size
    strings_at = symbols_at + len(symbols)
    names_at = strings_at + len(strings)
    allocated = 2
    headers = [
        _SECTION.pack(0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
        _SECTION.pack(at[1], _ROOM, allocated, 0, symbols_at, size, 0, 0, PAGE, 0),
        _SECTION.pack(
            at[2], _SYMBOLS, 0, 0, symbols_at, len(symbols), 3, 1, 8, _SYMBOL.size
        ),
        _SECTION.pack(at[3], _STRINGS, 0, 0, strings_at, len(strings), 0, 0, 1, 0),
        _SECTION.pack(at[4], _STRINGS, 0, 0, names_at, len(name_table), 0, 0, 1, 0),
    ]
    body = symbols + strings + name_table
    body += bytes(-len(body) % 8)
    return _header(machine, _HEADER.size + len(body)) + body + b"".join(headers)


def _header(machine: Machine, section_offset: int) -> bytes:
    relocatable, version, sections, names = 1, 1, 5, 4
    return _HEADER.pack(
        b"\x7fELF\x02\x01\x01" + bytes(9),
        relocatable,
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
