"""How much of the stack a kernel's functions take: little, for threads of any kind.

Temporaries lie in scratch memory (nanoloom/vector/scratch.py).  What is left is bounded
there; what LLVM adds for registers it spills is little, but nobody's promise: each
object is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable

FRAME_BYTES = 32 * 1024  # of one function: a thread of 64 KiB has room for it
_SUBTRACT = re.compile(rb"\x48\x81\xec(....)", re.DOTALL)  # sub rsp, 32 bits
_WORDS = re.compile(r"\bsubq\s+\$(\d+), %rsp")


def require_small(code: bytes, assembly: Callable[[], str]) -> None:
    """RuntimeError, a bug of ours, if a function takes too much of a thread's stack.

    Of x86 alone: no other machine's code is run yet.
    """
    if may_exceed(code) and (size := largest_frame(assembly())) > FRAME_BYTES:
        raise RuntimeError(f"a kernel takes {size} bytes of stack")


def may_exceed(code: bytes) -> bool:
    """Whether x86 code has bytes that look like a frame larger than FRAME_BYTES."""
    found = (int.from_bytes(x[1], "little") for x in _SUBTRACT.finditer(code))
    return any(size > FRAME_BYTES for size in found)


def largest_frame(assembly: str) -> int:
    """Bytes of the largest frame in x86 assembly, without its saved registers."""
    return max((int(size) for size in _WORDS.findall(assembly)), default=0)
