"""Masked stores of one lane become stores of one number, in LLVM 22's text.

    masked.store(<16 x i8> %x, %p, <1, 0, ...>)  ->  store(extractelement(%x, 0), %p)

LLVM 22.1's code generator for AVX-512 writes too much otherwise: where the vector is
shortened from wider numbers, the lane's wide number is stored, over what lies behind.
It is done for every target, since a mask never stores one number better; and behind the
optimizer, since most masks are known only once it has unrolled the loops around them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import gcd

CALL = "call void @llvm.masked.store."
_PARTS = re.compile(
    r"^ *(?:tail |notail )?call void @llvm\.masked\.store\.[\w.]+"
    r"\(<\d+ x (?P<element>\w+)> (?P<value>.+?), "
    r"ptr (?:[a-z_]+(?:\([^)]*\))? )*?align (?P<alignment>\d+) (?P<pointer>[%@].+), "
    r"<(?P<lanes>\d+) x i1> (?P<mask>[^%]+)\)(?: #\d+)?(?P<metadata>(?:, !.*)?)$"
)
_FUNCTIONS = re.compile(r"^(?=define )", re.MULTILINE)
_NAME = re.compile(r"%(?:[-\w.$]+|\"[^\"]+\")")
_VALUE = re.compile(rf"^ *({_NAME.pattern}) = (.*)$")
_VARIABLE = re.compile(rf" x i1> ({_NAME.pattern})\)[^()]*$")
_CONSTANT = re.compile(r"<(\d+) x i1> (<[^<>]*>|splat \(i1 \w+\)|\w+)\)[^()]*$")
_DEFINITION = re.compile(r"^define .*?@([-\w.$]+|\"[^\"]+\")\(")
# What is not computed of the operands alone.
VARIABLE = ("phi ", "load ", "call ", "tail call ", "alloca ", "atomicrmw ", "cmpxchg ")
_COMPUTED = re.compile(r"^(?:tail )?call [^@]*@llvm\.[us](?:min|max)\.")
_BYTES = {"half": 2, "bfloat": 2, "float": 4, "double": 8, "ptr": 8}


@dataclass(frozen=True)
class Store:
    """A masked store whose mask is known to have one lane."""

    element: str
    lanes: int
    lane: int
    value: str
    pointer: str
    alignment: int
    metadata: str

    @property
    def size(self) -> int:
        """Of an element, in bytes."""
        return _BYTES.get(self.element) or int(self.element[1:]) // 8

    def plain(self, number: int) -> list[str]:
        """The lines that store the lane alone; number: of the store, for names."""
        taken, place = f"%one.lane.{number}", f"%one.place.{number}"
        vector = f"<{self.lanes} x {self.element}> {self.value}"
        lines = [f"  {taken} = extractelement {vector}, i64 {self.lane}"]
        at, alignment = self.pointer, self.alignment
        if self.lane:
            step = f"{self.element}, ptr {self.pointer}, i64 {self.lane}"
            lines.append(f"  {place} = getelementptr {step}")
            at, alignment = place, gcd(alignment, self.lane * self.size)
        end = f"align {alignment}{self.metadata}"
        return [*lines, f"  store {self.element} {taken}, ptr {at}, {end}"]


class UnclearMask(RuntimeError):
    """A mask that is a constant, but not written as one."""


def scalar_stores(text: str) -> str:
    """The module with no masked store that is known to be of one lane.

    The same object if there was none.  Raises, as a bug of nanoloom's that names the
    function, UnclearMask for a mask that the code generator would make a constant of,
    and RuntimeError for a store that cannot be rewritten.
    """
    if CALL not in text:
        return text
    parts = _FUNCTIONS.split(text)
    made = [in_function(part) if CALL in part else part for part in parts]
    return text if made == parts else "".join(made)


def in_function(text: str) -> str:
    """One function without such stores; text that begins with its first line."""
    lines = text.split("\n")
    found = [_VALUE.match(line) for line in lines]
    values = {value[1]: value[2] for value in found if value}
    made: list[str] = []
    for number, line in enumerate(lines):
        if CALL in line and len(lanes := lanes_of(line, values, lines[0])) == 1:
            made += store_of(line, lanes[0], lines[0]).plain(number)
        else:
            made.append(line)
    return "\n".join(made)


def lanes_of(line: str, values: Mapping[str, str], function: str) -> list[int]:
    """The lanes that a call surely stores; none if that is known only as it runs."""
    variable = _VARIABLE.search(line)
    if variable and not is_constant(variable[1], values):
        return []
    found = _CONSTANT.search(line)
    if found is None:
        raise UnclearMask(f"{place(function)}: the mask of a store is unclear: {line}")
    count, mask = int(found[1]), found[2]
    if mask.startswith("splat"):
        return list(range(count)) if "true" in mask else []
    return [
        n for n, bit in enumerate(mask.split(",")) if bit.endswith(("true", "true>"))
    ]


def is_constant(name: str, values: Mapping[str, str]) -> bool:
    """Whether a value is computed of constants alone."""
    made = values.get(name)
    if made is None or (made.startswith(VARIABLE) and not _COMPUTED.search(made)):
        return False
    return all(is_constant(used, values) for used in _NAME.findall(made))


def store_of(line: str, lane: int, function: str) -> Store:
    found = _PARTS.match(line)
    if found is None or found["element"] == "i1":
        raise RuntimeError(f"{place(function)}: a store of one lane is left: {line}")
    return Store(
        found["element"],
        int(found["lanes"]),
        lane,
        found["value"],
        found["pointer"],
        int(found["alignment"]),
        found["metadata"],
    )


def place(function: str) -> str:
    """The name of a function, of the line that begins it."""
    found = _DEFINITION.match(function)
    return f"kernel {found[1]}" if found else "a kernel"
