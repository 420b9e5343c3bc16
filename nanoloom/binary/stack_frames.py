"""How much of the stack a kernel's functions take: little, for threads of any kind.

Temporaries lie in scratch memory (nanoloom/vector/scratch_memory.py).  What is left is
bounded there; what LLVM adds for registers it spills is little, but nobody's promise:
each object is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from nanoloom.errors import Error
from nanoloom.target.instruction_set import Frame

FRAME_BYTES = 32 * 1024  # of one function: a thread of 64 KiB has room for it


def require_small(
    code: bytes, assembly: Callable[[], str], frame: Frame, *, given: bool = False
) -> None:
    """RuntimeError, a bug of ours, if a function takes too much of a thread's stack;
    Error where its schedule is a user's."""
    if not may_exceed(code, frame):
        return
    size = largest_frame(assembly(), frame)
    if size > FRAME_BYTES and given:
        reason = f"it takes {size} bytes of stack, {FRAME_BYTES} at most"
        raise Error(reason, hint="keep fewer numbers in registers")
    if size > FRAME_BYTES:
        raise RuntimeError(f"a kernel takes {size} bytes of stack")


def may_exceed(code: bytes, frame: Frame) -> bool:
    """Whether code has bytes that look like a frame larger than FRAME_BYTES."""
    pattern = re.compile(frame.code, re.DOTALL)
    if "size" not in pattern.groupindex:  # the assembly tells
        return pattern.search(code) is not None
    found = (int.from_bytes(x["size"], "little") for x in pattern.finditer(code))
    return any(size > FRAME_BYTES for size in found)


def largest_frame(assembly: str, frame: Frame) -> int:
    """Bytes of the largest frame in assembly, without its saved registers."""
    sizes = (int(x["size"]) for x in re.finditer(frame.words, assembly))
    return max(sizes, default=0) * frame.unit
