"""Instructions of RISC-V's vectors, of whatever width there is; LLVM counts 64 bits.

Sources: the specification of vectors (RVV 1.0), of Zvfh, Zvfbfwma and Zvqdotq.  Behind
the operands stand the rounding (as set), how many lanes, and that no others are kept.
"""

from __future__ import annotations

from nanoloom.target.instructions import meanings
from nanoloom.target.instructions.instruction import (
    Instruction,
    instruction,
    sums_of_products,
)

RVV = "llvm.riscv."
BITS = 64
DYNAMIC, ALL, AGNOSTIC = 7, -1, 3  # rounding as set; every lane; none that are kept
WIDENING = {
    kind: instruction(
        name,
        needs,
        RVV + name,
        f"f32*2 <- f32*2 {kind} {kind}*2 i64 i64 i64",
        meanings.widening_product,
        BITS,
        scalable=True,
        words=(DYNAMIC, ALL, AGNOSTIC),
    )
    for kind, needs, name in (
        ("f16", "zvfh", "vfwmacc"),
        ("bf16", "zvfbfwma", "vfwmaccbf16"),
    )
}


def _dot(name: str, left: str, right: str) -> Instruction:
    return sums_of_products(
        name,
        "zvqdotq",
        f"{left} {right} s32",
        BITS,
        "llvm.vector.partial.reduce.add",
        meanings.dot,
        scalable=True,
        widened=True,
    )


# Zvdot4a8i has the same under other names: LLVM 22 and 24 agree on the general sum.
SCALABLE_DOTS = (
    _dot("vqdot", "s8", "s8"),
    _dot("vqdotu", "u8", "u8"),
    _dot("vqdotsu", "s8", "u8"),
)

INSTRUCTIONS = (*WIDENING.values(), *SCALABLE_DOTS)
