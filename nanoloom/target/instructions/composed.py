"""Products that are some operations of LLVM's, which every target has.

Products of bits are the bits that differ: an xor, and ones that are counted in lanes of
32 bits where an instruction does that (vpopcntd), elsewhere byte by byte (pshufb on
x86, cnt on Arm), with sums that are bytes themselves.
"""

from __future__ import annotations

from nanoloom.target.instructions import meanings
from nanoloom.target.instructions.instruction import GROUP, Instruction

DIFFERING = "differing bits"
BYTE_STEPS = 255 // 8  # until a byte may be full of ones


def _differing(sums: str, needs: tuple[str, ...] = (), most: int = 0) -> Instruction:
    return Instruction(
        DIFFERING,
        needs,
        DIFFERING,
        meanings.differing,
        sums,
        (sums, "b8", "b8"),
        left="b8",
        right="b8",
        sums=sums,
        shape=(1, 1, GROUP["b8"]),
        most=most,
    )


DIFFERING_BITS = (
    _differing("s32", ("avx512vpopcntdq",)),
    _differing("u8", most=BYTE_STEPS),
)
