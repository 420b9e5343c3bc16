"""Names of intrinsics that LLVM 24 tells apart by kinds of pointers, LLVM 22 not."""

from __future__ import annotations

import re

TILE_ROWS = re.compile(
    r"(@llvm\.aarch64\.sme\.(?:ld|st)1[bhwdq]\.(?:horiz|vert))\.p0\b"
)


def as_llvm22(text: str) -> str:
    """The module's text with the names that the code generator knows."""
    return TILE_ROWS.sub(r"\1", text) if "llvm.aarch64.sme" in text else text
