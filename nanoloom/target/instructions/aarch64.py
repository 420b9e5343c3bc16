"""Instructions of AArch64: NEON's, of SVE those of whatever width there is, SME's.

Source: Arm's A64 reference (DDI 0602).
"""

from __future__ import annotations

from dataclasses import replace

from nanoloom.target.instructions import meanings
from nanoloom.target.instructions.instruction import (
    BITS,
    OTHER,
    Extreme,
    Instruction,
    instruction,
    sums_of_products,
)

NEON, SVE, SME = "llvm.aarch64.neon.", "llvm.aarch64.sve.", "llvm.aarch64.sme."
QUAD = 128  # bits
ROWS = 2  # of a matrix in 128 bits
LANE_REGISTERS = 8  # a lane of which multiplies: 3 bits of SVE's FMLA say which


def _neon(name: str, needs: str, types: str, function: str) -> Instruction:
    return sums_of_products(name, needs, types, QUAD, NEON + function, meanings.dot)


def _sve(name: str, needs: str, types: str, function: str) -> Instruction:
    return sums_of_products(
        name, f"sve {needs}", types, QUAD, SVE + function, meanings.dot, scalable=True
    )


def _matrix(name: str, needs: str, types: str, function: str) -> Instruction:
    k = QUAD // ROWS // BITS[types.split()[0]]
    return sums_of_products(
        name,
        f"sve {needs}",
        types,
        QUAD,
        SVE + function,
        meanings.matrix,
        (ROWS, ROWS, k),
        scalable=True,
    )


DOTS = (
    _neon("bfdot", "bf16", "bf16 bf16 f32", "bfdot.v4f32.v8bf16"),
    _neon("sdot", "dotprod", "s8 s8 s32", "sdot.v4i32.v16i8"),
    _neon("udot", "dotprod", "u8 u8 s32", "udot.v4i32.v16i8"),
    _neon("usdot", "i8mm", "u8 s8 s32", "usdot.v4i32.v16i8"),
)
# On registers of whatever width there is.
SCALABLE_DOTS = (
    _sve("usdot", "i8mm", "u8 s8 s32", "usdot.nxv4i32"),
    _sve("sdot", "", "s8 s8 s32", "sdot.nxv4i32"),
    _sve("udot", "", "u8 u8 s32", "udot.nxv4i32"),
    _sve("bfdot", "bf16", "bf16 bf16 f32", "bfdot"),
    _sve("fdot", "sve2p1", "f16 f16 f32", "fdot.x2.nxv4f32"),
)
# Two rows by two columns in every 128 bits, of twice as many steps.
MATRICES = (
    _matrix("smmla", "i8mm", "s8 s8 s32", "smmla.nxv4i32"),
    _matrix("ummla", "i8mm", "u8 u8 s32", "ummla.nxv4i32"),
    _matrix("usmmla", "i8mm", "u8 s8 s32", "usmmla.nxv4i32"),
    _matrix("bfmmla", "bf16", "bf16 bf16 f32", "fmmla.nxv4f32.nxv8bf16"),
    _matrix("fmmla", "f32mm", "f32 f32 f32", "fmmla.nxv4f32.nxv4f32"),
)
LANE_PRODUCT = replace(
    instruction(
        "fmla", "sve", f"{SVE}fmla.lane.nxv4f32", "f32*4 <- f32*4 f32*4 f32*4 i32",
        meanings.lane_product, QUAD, scalable=True,
    ),
    left="f32", right="f32", sums="f32", shape=(1, 1, 1), lanes=QUAD // BITS["f32"],
)  # fmt: skip
REPEATED_QUAD = instruction(
    "mov", "sve", f"{SVE}dupq.lane.nxv4f32", "f32*4 <- f32*4 i64",
    meanings.repeated_quad, QUAD, scalable=True,
)  # fmt: skip
# Of numbers of any width, which MLIR adds to the names.
EXCHANGES = tuple(
    instruction(name, "sve", SVE + name, "s32*4 <- s32*4 s32*4", meaning, QUAD,
                scalable=True)
    for name, meaning in (
        ("trn1", meanings.even_exchange), ("trn2", meanings.odd_exchange),
    )
)  # fmt: skip
LOOKUP = instruction(
    "tbl", "neon", f"{NEON}tbl4.v16i8", "s8*16 <-" + " s8*16" * 5,
    meanings.lookup64, QUAD,
)  # fmt: skip
# LLVM selects it of a general operation, which MLIR's math dialect has.
POPCOUNT = instruction(
    "cnt", "neon", "llvm.ctpop.v16i8", "s8*16 <- s8*16", meanings.popcount, QUAD
)
# Of any vector: LLVM selects them of MLIR's operations.
EXTREMES = tuple(
    Extreme(
        word, "",
        instruction(f"f{word}nm", "neon", f"llvm.{word}num.v4f32",
                    "f32*4 <- f32*4 f32*4", meaning, QUAD),
        OTHER, operation=f"arith.{word}numf",
    )
    for word, meaning in (
        ("max", meanings.larger_number), ("min", meanings.smaller_number),
    )
)  # fmt: skip
# Tiles as wide and as high as a vector of SME's own length.
TILES = (
    instruction("smstart", "sme", f"{SME}za.enable", "<-", None),
    instruction("smstop", "sme", f"{SME}za.disable", "<-", None),
    instruction("zero", "sme", f"{SME}zero", "<- i32", None),
    instruction("fmopa", "sme", f"{SME}mopa.nxv4f32",
                "<- i32 i1*4 i1*4 f32*4 f32*4", meanings.outer, scalable=True),
    *(
        instruction(way[:4], "sme", SME + way, "<- i1*4 ptr i32 i32", None,
                    scalable=True)
        for way in ("ld1w.horiz", "st1w.horiz", "st1w.vert")
    ),
)  # fmt: skip

INSTRUCTIONS = (
    *DOTS,
    *SCALABLE_DOTS,
    *MATRICES,
    LANE_PRODUCT,
    REPEATED_QUAD,
    *EXCHANGES,
    LOOKUP,
    POPCOUNT,
    *(x.instruction for x in EXTREMES),
    *TILES,
)
