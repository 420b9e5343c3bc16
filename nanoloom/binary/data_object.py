"""Constants as an object: arrays of structs of C, whose pointers a linker fills in.

A compiler's process for a table of a few numbers took as long as a third of a small
model's compilation.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from nanoloom.binary.elf import SYMBOL, Machine, Section, relocatable

SECTION = ".data.rel.ro"
# The type of a pointer's relocation, by e_machine: x86-64, AArch64, RISC-V, PowerPC.
ABSOLUTE = {62: 1, 183: 257, 243: 2, 21: 38}
_RELOCATION = struct.Struct("<QQq")
_OWN = 1  # the symbol of the section itself


@dataclass(frozen=True)
class At:
    """The address of an array, or of what another object defines; "" for NULL."""

    name: str


Field = int | str | At  # a text is the address of its UTF-8, which ends in a zero


@dataclass(frozen=True)
class Array:
    """An array of structs, each of which is a row.

    fields: the struct, as Python's `struct` has them, with its padding; Q for pointers.
    shown: whether other objects see it, by its name.
    """

    name: str
    fields: str
    rows: Sequence[tuple[Field, ...]]
    shown: bool = False


@dataclass
class _Content:
    """The section while it is put together.  pointers: where they are, and to what."""

    data: bytearray = field(default_factory=bytearray)
    places: dict[str, int] = field(default_factory=dict[str, int])
    pointers: list[tuple[int, str | At]] = field(default_factory=list)

    def add(self, array: Array) -> None:
        self.data += bytes(-len(self.data) % 8)
        self.places[array.name] = len(self.data)
        form, offsets = _form(array.fields)
        for row in array.rows:
            numbers = [x if isinstance(x, int) else 0 for x in row]
            begin = len(self.data)
            self.data += form.pack(*numbers)
            self.pointers += [
                (begin + at, x)
                for at, x in zip(offsets, row, strict=True)
                if not isinstance(x, int) and x != At("")
            ]

    def add_texts(self) -> dict[str, int]:
        """Where each of the texts is from now; equal ones are one."""
        texts: dict[str, int] = {}
        for _, to in self.pointers:
            if isinstance(to, str) and to not in texts:
                texts[to] = len(self.data)
                self.data += to.encode() + b"\0"
        return texts


@cache
def _form(fields: str) -> tuple[struct.Struct, tuple[int, ...]]:
    """A struct, and where its fields begin."""
    codes = [
        (count + code if code == "x" else code, 1 if code == "x" else int(count or 1))
        for count, code in re.findall(r"(\d*)(\w)", fields)
    ]
    offsets: list[int] = []
    before = "<"
    for code, times in codes:
        for _ in range(times):
            if not code.endswith("x"):
                offsets.append(struct.calcsize(before))
            before += code
    return struct.Struct(before), tuple(offsets)


def data_object(machine: Machine, arrays: Sequence[Array]) -> bytes:
    """An object that defines these arrays; their texts lie behind them.

    machine: one of ABSOLUTE.
    """
    content = _Content()
    for array in arrays:
        content.add(array)
    texts = content.add_texts()
    wanted = [x.name for _, x in content.pointers if isinstance(x, At)]
    missing = list(dict.fromkeys(x for x in wanted if x not in content.places))
    shown = [x for x in arrays if x.shown]
    first = _OWN + 1 + len(shown)
    numbers = {name: i for i, name in enumerate(missing, first)}
    kind = ABSOLUTE[machine.number]
    relocations: list[bytes] = []
    for place, to in content.pointers:
        there, name = (texts, to) if isinstance(to, str) else (content.places, to.name)
        symbol = _OWN if name in there else numbers[name]
        addend = there.get(name, 0)
        relocations.append(_RELOCATION.pack(place, symbol << 32 | kind, addend))
    symbols, names = _symbols(shown, content.places, missing)
    allocated_and_written, of_a_section = 3, 0x40
    return relocatable(
        machine,
        [
            Section(SECTION, 1, bytes(content.data), allocated_and_written, align=8),
            Section(
                f".rela{SECTION}", 4, b"".join(relocations), of_a_section, link=3,
                info=1, align=8, entry=_RELOCATION.size,
            ),
            Section(".symtab", 2, symbols, link=4, info=_OWN + 1, align=8, entry=24),
            Section(".strtab", 3, names),
        ],
    )  # fmt: skip


def _symbols(
    shown: Sequence[Array], places: Mapping[str, int], missing: Sequence[str]
) -> tuple[bytes, bytes]:
    """The table of symbols and that of their names.

    shown: what others see; places: where.  missing: the names of what they define.
    """
    is_section, is_object, is_missing, hidden = 3, 0x11, 0x10, 2
    names = bytearray(b"\0")
    rows = [(0, 0, 0, 0, 0, 0), (0, is_section, 0, 1, 0, 0)]
    for array in shown:
        size = _form(array.fields)[0].size * len(array.rows)
        rows.append((len(names), is_object, hidden, 1, places[array.name], size))
        names += array.name.encode() + b"\0"
    for name in missing:
        rows.append((len(names), is_missing, 0, 0, 0, 0))
        names += name.encode() + b"\0"
    return b"".join(SYMBOL.pack(*row) for row in rows), bytes(names)
