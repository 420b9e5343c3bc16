"""Floating literals of LLVM 24's textual IR, rewritten so that LLVM 22 reads them.

MLIR's LLVM prints `float 1.000000e-01` (short decimals that only round to the value),
`f0x3DCCCCCD` (the bits), `+inf`, `+qnan` and `+snan(0x1)`.  The code generator's LLVM
wants decimals that are exact, or hexadecimal forms of its own: every literal becomes
the latter, bit for bit.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache


@dataclass(frozen=True)
class _Format:
    """An IEEE-754 interchange format."""

    bits: int
    mantissa: int
    prefix: str  # of LLVM's hexadecimal form

    @property
    def infinity(self) -> int:
        """The bits of +inf, which are those of the exponent."""
        return (1 << (self.bits - 1)) - (1 << self.mantissa)

    @property
    def lowest_exponent(self) -> int:
        """Of normal numbers, and of the subnormal ones' leading zero."""
        return 2 - (1 << (self.bits - self.mantissa - 2))


_FORMATS = {
    "float": _Format(32, 23, "0x"),
    "double": _Format(64, 52, "0x"),
    "half": _Format(16, 10, "0xH"),
    "bfloat": _Format(16, 7, "0xR"),
}

# A literal stands after a space or an opening bracket; its type mostly right before it.
_LITERAL = re.compile(
    r"(?:(?<![%@!#$\w.\-])(?P<type>float|double|half|bfloat) |(?<=[ (\[<{]))"
    r"(?P<text>f0x[0-9A-Fa-f]+"
    r"|[+-](?:inf|q?nan|snan)\b(?:\(0x[0-9A-Fa-f]+\))?"
    r"|[+-]?\d+\.\d*(?:[eE][+-]?\d+)?)(?![\w.])"
)
_LAST_TYPE = re.compile(r".*(?<![%@!#$\w.\-])(float|double|half|bfloat)(?![\w.\-])")
_QUOTED = re.compile(r'"[^"]*"')  # LLVM writes a quote inside quotes as \22


def to_llvm22(text: str) -> str:
    """The same module with every floating literal in LLVM 22's hexadecimal form."""
    # Looking for a substring is many times faster than the expression, and few lines
    # of a kernel hold a literal.
    return "\n".join(
        [
            _rewrite(line)
            if "." in line or "f0x" in line or "inf" in line or "nan" in line
            else line
            for line in text.split("\n")
        ]
    )


def _rewrite(line: str) -> str:
    pieces: list[str] = []
    done, has_quotes = 0, '"' in line
    for match in _LITERAL.finditer(line):
        start, kind = match.start("text"), match["type"]
        if kind is None or has_quotes:
            kind = _type_before(line[:start])
        if kind is not None:
            pieces += line[done:start], _hexadecimal(kind, match["text"])
            done = match.end("text")
    return "".join((*pieces, line[done:])) if done else line


def _type_before(line: str) -> str | None:
    """The type that a literal behind `line` has; None inside a quoted string."""
    if line.count('"') % 2:
        return None
    found = _LAST_TYPE.match(_QUOTED.sub('""', line))
    return found[1] if found else None


@lru_cache(maxsize=1 << 14)
def _hexadecimal(kind: str, literal: str) -> str:
    form = _FORMATS[kind]
    if literal.startswith("f0x"):
        bits = int(literal[3:], 16)
    elif literal[-1].isdigit() or literal[-1] == ".":
        bits = _nearest(form, literal)
    else:
        bits = _special(form, literal)
    if kind == "float":  # LLVM writes a float as the double of the same value
        bits = _widened(bits)
    digits = 16 if kind in ("float", "double") else 4
    return f"{form.prefix}{bits:0{digits}X}"


def _special(form: _Format, literal: str) -> int:
    """Infinities and NaNs; `qnan` sets the quiet bit on top of the payload."""
    sign = (literal[0] == "-") << (form.bits - 1)
    name, _, payload = literal[1:].rstrip(")").partition("(")
    bits = sign | form.infinity
    if name == "inf":
        return bits
    number = int(payload, 16) if payload else 0
    if name == "snan":
        return bits | (number or 1)
    return bits | 1 << (form.mantissa - 1) | number


def _nearest(form: _Format, literal: str) -> int:
    """The bits of the number nearest to a decimal, ties to even.

    In exact arithmetic: through a double it would be rounded twice.
    """
    sign = (literal[0] == "-") << (form.bits - 1)
    value = abs(Fraction(literal))
    if not value:
        return sign
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    exponent -= value < Fraction(2) ** exponent
    exponent = max(exponent, form.lowest_exponent)
    mantissa = round(value / Fraction(2) ** (exponent - form.mantissa))
    # The leading 1 of a normal number, and a carry out of rounding, count the
    # exponent field up by themselves.
    bits = ((exponent - form.lowest_exponent) << form.mantissa) + mantissa
    return sign | min(bits, form.infinity)


def _widened(bits: int) -> int:
    """A float's bits as a double's, NaN payloads kept."""
    sign, exponent, mantissa = bits >> 31, bits >> 23 & 0xFF, bits & 0x7FFFFF
    if exponent == 0xFF:
        return sign << 63 | 0x7FF << 52 | mantissa << 29
    (value,) = struct.unpack("<f", struct.pack("<I", bits))
    (wide,) = struct.unpack("<Q", struct.pack("<d", value))
    return wide
