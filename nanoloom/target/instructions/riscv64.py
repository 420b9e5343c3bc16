"""Instructions of RISC-V's vectors, of whatever width there is; LLVM counts 64 bits.

Sources: the specification of vectors (RVV 1.0), of Zvfh and Zvfbfwma.  Behind
the operands stand the rounding (as set), how many lanes, and that no others are kept.
"""

from __future__ import annotations

from nanoloom.target.instructions import meanings
from nanoloom.target.instructions.instruction import (
    OTHER,
    Extreme,
    Instruction,
    instruction,
)

RVV = "llvm.riscv."
BITS = 64
DYNAMIC, ALL, AGNOSTIC = 7, -1, 3  # rounding as set; every lane; none that are kept


def _number_product(kind: str, needs: str, name: str) -> Instruction:
    return Instruction(
        name,
        (needs,),
        RVV + name,
        meanings.widening_product,
        "f32*2",
        ("f32*2", kind, f"{kind}*2", "i64", "i64", "i64"),
        BITS,
        left=kind,
        right=kind,
        sums="f32",
        shape=(1, 1, 1),
        scalable=True,
        swaps=False,
        words=(DYNAMIC, ALL, AGNOSTIC),
    )


# A vector times a number.
NUMBER_PRODUCTS = (
    _number_product("f16", "zvfh", "vfwmacc"),
    _number_product("bf16", "zvfbfwma", "vfwmaccbf16"),
)
# Of any vector: LLVM selects them of MLIR's operations.
EXTREMES = tuple(
    Extreme(
        word, "",
        instruction(f"vf{word}", "v", f"llvm.{word}num.nxv2f32", "f32*2 <- f32*2 f32*2",
                    meaning, BITS, scalable=True),
        OTHER, operation=f"arith.{word}numf",
    )
    for word, meaning in (
        ("max", meanings.larger_number), ("min", meanings.smaller_number),
    )
)  # fmt: skip

INSTRUCTIONS = (*NUMBER_PRODUCTS, *(x.instruction for x in EXTREMES))
