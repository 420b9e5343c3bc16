"""Dot-product instructions: sums += left . right, several narrow products a lane.

Sources: Intel's Instruction Set Extensions Reference (319433), Arm's A64 reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nanoloom.target.facts import Target

GROUP = {"bf16": 2, "s8": 4, "u8": 4}  # numbers that fill a lane of 32 bits
FLIPPED = {"s8": "u8", "u8": "s8"}
HALF_RANGE = 128  # a ^ 0x80 is a + 128 of a signed byte, a - 128 of an unsigned one


@dataclass(frozen=True)
class Dot:
    """One instruction on registers of `bits`: which numbers it multiplies.

    function: its LLVM intrinsic, or the operation of MLIR's x86 dialect.
    """

    needs: str
    left: str
    right: str
    bits: int
    function: str


DOTS = (  # the first that fits is taken: wide ones first
    Dot("avx512bf16", "bf16", "bf16", 512, "x86.avx512.dot"),
    Dot("bf16", "bf16", "bf16", 128, "llvm.aarch64.neon.bfdot.v4f32.v8bf16"),
    Dot("avx512vnni", "u8", "s8", 512, "llvm.x86.avx512.vpdpbusd.512"),
    Dot("avxvnniint8", "s8", "s8", 256, "x86.avx.dot.i8"),
    Dot("avxvnniint8", "s8", "u8", 256, "llvm.x86.avx2.vpdpbsud.256"),
    Dot("avxvnniint8", "u8", "u8", 256, "llvm.x86.avx2.vpdpbuud.256"),
    Dot("avxvnni", "u8", "s8", 256, "llvm.x86.avx512.vpdpbusd.256"),
    Dot("dotprod", "s8", "s8", 128, "llvm.aarch64.neon.sdot.v4i32.v16i8"),
    Dot("dotprod", "u8", "u8", 128, "llvm.aarch64.neon.udot.v4i32.v16i8"),
    Dot("i8mm", "u8", "s8", 128, "llvm.aarch64.neon.usdot.v4i32.v16i8"),
)
# On registers of whatever width there is, of so many bits for each vscale: of SVE.
SCALABLE_DOTS = (
    Dot("i8mm", "u8", "s8", 128, "llvm.aarch64.sve.usdot.nxv4i32"),
    Dot("sve", "s8", "s8", 128, "llvm.aarch64.sve.sdot.nxv4i32"),
    Dot("sve", "u8", "u8", 128, "llvm.aarch64.sve.udot.nxv4i32"),
    Dot("bf16", "bf16", "bf16", 128, "llvm.aarch64.sve.bfdot"),
)
# Two rows by two columns in every 128 bits, of twice as many steps.
SCALABLE_MATRICES = (
    Dot("i8mm", "s8", "s8", 128, "llvm.aarch64.sve.smmla.nxv4i32"),
    Dot("i8mm", "u8", "u8", 128, "llvm.aarch64.sve.ummla.nxv4i32"),
    Dot("i8mm", "u8", "s8", 128, "llvm.aarch64.sve.usmmla.nxv4i32"),
    Dot("bf16", "bf16", "bf16", 128, "llvm.aarch64.sve.fmmla.nxv4f32.nxv8bf16"),
)
MATRIX_ROWS = 2


@dataclass(frozen=True)
class DotUse:
    """How an instruction multiplies operands of given types.

    swapped: the left operand is the instruction's second.  flipped: the left operand
    has its sign bits inverted first, which adds to every sum what `correction` times
    the sum of the right operand takes away again; exact modulo 2^32.
    """

    dot: Dot
    swapped: bool = False
    flipped: bool = False
    correction: int = 0


def dot_for(target: Target, left: str, right: str) -> DotUse | None:
    """The target's instruction for these element types, None if it has none."""
    known = [d for d in DOTS if target.has(d.needs) and d.bits == target.vector.bits]
    return dot_use_of(known, left, right)


def scalable_dot(target: Target, left: str, right: str) -> DotUse | None:
    """The same of registers whose width the machine tells.

    Where that is known, those of 128 bits are as fast, and their panels woven before.
    """
    if not target.vector.any_length or not target.has("sve"):
        return None
    return dot_use_of([d for d in SCALABLE_DOTS if target.has(d.needs)], left, right)


def scalable_matrix(target: Target, left: str, right: str) -> DotUse | None:
    """The instruction for two rows at once, with signs as they are."""
    if not target.vector.any_length or not target.has("sve"):
        return None
    known = [dot for dot in SCALABLE_MATRICES if target.has(dot.needs)]
    use = dot_use_of(known, left, right)
    return None if use is None or use.flipped else use


def dot_use_of(known: Sequence[Dot], left: str, right: str) -> DotUse | None:
    """The first of some instructions that multiplies these, with inverted signs if
    there is none without."""
    for flipped in (False, True):
        one = FLIPPED.get(left, "") if flipped else left
        for dot in known:
            for swapped in (False, True):
                takes = (dot.right, dot.left) if swapped else (dot.left, dot.right)
                if takes == (one, right):
                    added = 0 if not flipped else correction(left)
                    return DotUse(dot, swapped and one != right, flipped, added)
    return None


def bytes_dot(target: Target, left: str, right: str) -> DotUse | None:
    """The instruction that multiplies bytes as they are; None if there is none."""
    use = dot_for(target, left, right) if {left, right} <= FLIPPED.keys() else None
    return None if use is None or use.flipped else use


def correction(left: str) -> int:
    """What takes back the flipped sign bits of a left operand of this type."""
    return -HALF_RANGE if left == "s8" else HALF_RANGE


PAIR_PRODUCTS = {  # vpmaddwd by bits of a register, and what it needs
    128: ("sse4.2", "llvm.x86.sse2.pmadd.wd"),
    256: ("avx2", "llvm.x86.avx2.pmadd.wd"),
    512: ("avx512bw", "llvm.x86.avx512.pmaddw.d.512"),
}


def pair_products(target: Target) -> str | None:
    """The intrinsic that adds two neighbouring products of 16-bit numbers."""
    needs, function = PAIR_PRODUCTS.get(target.vector.bits, ("", ""))
    return function if function and target.has(needs) else None
