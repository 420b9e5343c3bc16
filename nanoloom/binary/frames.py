"""How much of the stack a kernel's functions take: little, for threads of any kind.

Temporaries lie in scratch memory (nanoloom/vector/scratch.py).  What is left is bounded
there; what LLVM adds for registers it spills is little, but nobody's promise: each
object is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from nanoloom.binary.elf import Machine

FRAME_BYTES = 32 * 1024  # of one function: a thread of 64 KiB has room for it


@dataclass(frozen=True)
class Reading:
    """How a machine's code makes room on the stack.

    code: in bytes, so that few others look alike; words: in assembly.  Of each match,
    the group "size" counts units of so many bytes.
    """

    code: re.Pattern[bytes]
    words: re.Pattern[str]
    unit: int


# By ELF's numbers.  Of the others' frames only whole pages are read, and no spilled
# vectors of unknown length.
READINGS = {
    62: Reading(
        re.compile(rb"\x48\x81\xec(?P<size>....)", re.DOTALL),  # sub rsp, 32 bits
        re.compile(r"\bsubq\s+\$(?P<size>\d+), %rsp"),
        1,
    ),
    183: Reading(
        re.compile(rb"[\xe0-\xff][\x03-\xff][\x40-\x7f]\xd1"),  # sub any, sp, pages
        re.compile(r"\bsub\s+(?:sp|x\d+), sp, #(?P<size>\d+), lsl #12"),
        4096,
    ),
    243: Reading(
        re.compile(rb"\x33\x01[\x01-\xf1][\x40\x41]"),  # sub sp, sp, any register
        re.compile(
            r"\blui\s+(?P<by>\w+), (?P<size>\d+)(?:\s+addiw?\s+.*)?"
            r"\s+sub\s+sp, sp, (?P=by)\b"
        ),
        4096,
    ),
}


def require_small(code: bytes, assembly: Callable[[], str]) -> None:
    """RuntimeError, a bug of ours, if a function takes too much of a thread's stack."""
    if not may_exceed(code):
        return
    size = largest_frame(assembly(), Machine.of(code))
    if size > FRAME_BYTES:
        raise RuntimeError(f"a kernel takes {size} bytes of stack")


def may_exceed(code: bytes) -> bool:
    """Whether code has bytes that look like a frame larger than FRAME_BYTES."""
    pattern = READINGS[Machine.of(code).number].code
    if "size" not in pattern.groupindex:  # the assembly tells
        return pattern.search(code) is not None
    found = (int.from_bytes(x["size"], "little") for x in pattern.finditer(code))
    return any(size > FRAME_BYTES for size in found)


def largest_frame(assembly: str, machine: Machine) -> int:
    """Bytes of the largest frame in assembly, without its saved registers."""
    reading = READINGS[machine.number]
    sizes = (int(x["size"]) for x in reading.words.finditer(assembly))
    return max(sizes, default=0) * reading.unit
