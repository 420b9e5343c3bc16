"""Names of intrinsics that LLVM 24 tells apart by their types, LLVM 22 not."""

from __future__ import annotations

import re

TILE_ROWS = re.compile(
    r"(@llvm\.aarch64\.sme\.(?:ld|st)1[bhwdq]\.(?:horiz|vert))\.p0\b"
)

PRODUCTS_OF_BF16 = "llvm.aarch64.sve.fmmla.nxv4f32.nxv8bf16", "llvm.aarch64.sve.bfmmla"


def as_llvm22(text: str) -> str:
    """The module's text with the names that the code generator knows."""
    text = text.replace(*PRODUCTS_OF_BF16)
    return TILE_ROWS.sub(r"\1", text) if "llvm.aarch64.sme" in text else text
