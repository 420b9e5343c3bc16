"""The names in an object file: which it shows, and which it wants of others."""

from __future__ import annotations

import struct
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

_HEADER_SECTIONS, _HEADER_COUNTS = 40, 58  # where a header tells of its sections
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOLS, _RELOCATIONS, _GROUP, _ADDRESSES = 2, 4, 17, 0x6FFF4C03  # kinds of sections
_SYMBOL = np.dtype(
    [
        ("name", "<u4"),
        ("info", "u1"),
        ("other", "u1"),
        ("section", "<u2"),
        ("value", "<u8"),
        ("size", "<u8"),
    ]
)
_RELOCATION = np.dtype(
    [("offset", "<u8"), ("kind", "<u4"), ("symbol", "<u4"), ("addend", "<i8")]
)
_INFO_AT = 44  # of a section's header: locals of a symbol table, a group's symbol


@dataclass(frozen=True)
class _Section:
    """A row of the section table, and where that row stands in the file."""

    at: int
    kind: int
    offset: int
    size: int
    link: int
    info: int


def wanted(code: bytes) -> set[str]:
    """The names that an object leaves for others to define."""
    sections = _sections(code)
    table = next(x for x in sections if x.kind == _SYMBOLS)
    symbols = _rows(code, table, _SYMBOL)
    return {
        _name(code, sections[table.link], int(symbol["name"]))
        for symbol in symbols[1:]
        if symbol["section"] == 0
    }


def localized(code: bytes, shown: Collection[str]) -> bytes:
    """A relocatable object that defines `shown` for others and all else for itself.

    So that two of them can be parts of one program, whatever names they share.
    """
    made = bytearray(code)
    sections = _sections(code)
    number, table = next((n, x) for n, x in enumerate(sections) if x.kind == _SYMBOLS)
    symbols = _rows(made, table, _SYMBOL)
    names = [_name(code, sections[table.link], int(x["name"])) for x in symbols]
    own = [
        i < table.info or (symbols[i]["section"] != 0 and names[i] not in shown)
        for i in range(len(symbols))
    ]
    for i in range(table.info, len(symbols)):
        if own[i]:
            symbols[i]["info"] &= 0xF  # local, of the same type
        if own[i] or names[i] in shown:
            symbols[i]["other"] &= 0xFC  # and visible, whatever the compiler was told
    order = np.argsort([not x for x in own], kind="stable")  # locals stand first
    symbols[:] = symbols[order]
    struct.pack_into("<I", made, table.at + _INFO_AT, sum(own))
    _renumber(made, sections, number, np.argsort(order))
    return bytes(made)


def _renumber(
    made: bytearray, sections: list[_Section], table: int, place: np.ndarray
) -> None:
    """Follow the symbols to their new places."""
    for section in sections:
        if section.link != table:
            continue
        if section.kind == _RELOCATIONS:
            rows = _rows(made, section, _RELOCATION)
            rows["symbol"] = place[rows["symbol"]]
        elif section.kind == _GROUP:
            moved = int(place[section.info])
            struct.pack_into("<I", made, section.at + _INFO_AT, moved)
        elif section.kind == _ADDRESSES:
            raise AssertionError("an object lists symbols by number")


def _sections(code: bytes | bytearray) -> list[_Section]:
    (begin,) = struct.unpack_from("<Q", code, _HEADER_SECTIONS)
    size, count = struct.unpack_from("<HH", code, _HEADER_COUNTS)
    found: list[_Section] = []
    for at in range(begin, begin + size * count, size):
        _, kind, _, _, offset, length, link, info, _, _ = _SECTION.unpack_from(code, at)
        found.append(_Section(at, kind, offset, length, link, info))
    return found


def _rows(code: bytes | bytearray, section: _Section, kind: np.dtype) -> np.ndarray:
    """The rows of a section; those of a bytearray can be written to."""
    count = section.size // kind.itemsize
    return np.frombuffer(code, kind, count, section.offset)


def _name(code: bytes, strings: _Section, at: int) -> str:
    begin = strings.offset + at
    return code[begin : code.index(b"\0", begin)].decode()
