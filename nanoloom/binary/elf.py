"""Just enough ELF to put a model's parameters into a binary without reading them.

A compiler's `.incbin` would hold gigabytes in memory; here the linker maps the file, or
it is copied as a stream.  Every target is known by the header of another object.
"""

from __future__ import annotations

import shutil
import struct
from dataclasses import dataclass
from pathlib import Path

PAGE = 4096  # parameters begin on a page
_MACHINE_X86_64 = 62
_LARGE = 0x10000000  # SHF_X86_64_LARGE: lld keeps it out of the 2 GB around the code
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


def write_object(
    output: Path, machine: Machine, symbol: str = "", data: Path | None = None
) -> None:
    """An object whose `symbol` is the content of `data`, page aligned and read-only.

    Without `data` it is empty: enough to make a shared library of a given name from.
    """
    size = data.stat().st_size if data else 0
    with output.open("wb") as file:
        file.write(bytes(PAGE))  # the header comes last, when all sizes are known
        if data:
            with data.open("rb") as source:
                shutil.copyfileobj(source, file, 1 << 22)
        tail = file.tell()
        sections, offset = _tail(machine, symbol, size, tail)
        file.write(sections)
        file.seek(0)
        file.write(_header(machine, offset))


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


def _tail(machine: Machine, symbol: str, size: int, start: int) -> tuple[bytes, int]:
    """Symbols, names and section headers; and where the section headers begin."""
    large = machine.number == _MACHINE_X86_64
    data_name = ".lrodata.nanoloom" if large else ".rodata.nanoloom"
    names = ["", data_name, ".symtab", ".strtab", ".shstrtab"]
    name_table = "\0".join(names).encode() + b"\0"
    at = [name_table.index(f"{name}\0".encode()) for name in names]
    symbols = _SYMBOL.pack(0, 0, 0, 0, 0, 0)
    if symbol:
        is_global_object, hidden = 0x11, 2
        symbols += _SYMBOL.pack(1, is_global_object, hidden, 1, 0, size)
    strings = b"\0" + symbol.encode() + b"\0"
    padding = bytes(-start % 8)
    symbols_at = start + len(padding)
    strings_at = symbols_at + len(symbols)
    names_at = strings_at + len(strings)
    flags = 2 | (_LARGE if large else 0)  # SHF_ALLOC
    headers = [
        _SECTION.pack(0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
        _SECTION.pack(at[1], 1, flags, 0, PAGE, size, 0, 0, PAGE, 0),
        _SECTION.pack(at[2], 2, 0, 0, symbols_at, len(symbols), 3, 1, 8, _SYMBOL.size),
        _SECTION.pack(at[3], 3, 0, 0, strings_at, len(strings), 0, 0, 1, 0),
        _SECTION.pack(at[4], 3, 0, 0, names_at, len(name_table), 0, 0, 1, 0),
    ]
    body = padding + symbols + strings + name_table
    more = bytes(-(start + len(body)) % 8)
    return body + more + b"".join(headers), start + len(body) + len(more)


def make_read_only(path: Path, size: int) -> None:
    """Take the right to write from the segment that holds nothing but `size` bytes.

    lld makes a file it is given as it is a writable section, and its scripts know no
    read-only one.  Read-only pages are shared between processes and need no swap space.
    """
    loaded, writable, read_only = 1, 6, 4
    with path.open("r+b") as file:
        header = _HEADER.unpack(file.read(_HEADER.size))
        first, count = header[5], header[10]
        found: list[int] = []
        for index in range(count):
            at = first + index * _SEGMENT.size
            file.seek(at)
            segment = _SEGMENT.unpack(file.read(_SEGMENT.size))
            if segment[:2] == (loaded, writable) and segment[5] == size:
                found.append(at)
        file.seek(found[-1] + 4)  # p_flags; the parameters are the last of all
        file.write(struct.pack("<I", read_only))
