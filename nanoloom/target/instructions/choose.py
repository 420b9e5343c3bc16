"""Which of the instructions a target gets for what."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from nanoloom.target.facts import Target
from nanoloom.target.instructions import aarch64, riscv64, x86
from nanoloom.target.instructions.composed import DIFFERING_BITS
from nanoloom.target.instructions.instruction import BITS, Extreme, Instruction

INSTRUCTIONS = (*x86.INSTRUCTIONS, *aarch64.INSTRUCTIONS, *riscv64.INSTRUCTIONS)
DOTS = (*x86.DOTS, *aarch64.DOTS)
EXTREMES = {
    "x86_64": x86.EXTREMES,
    "aarch64": aarch64.EXTREMES,
    "riscv64": riscv64.EXTREMES,
}
SCALABLE_DOTS = aarch64.SCALABLE_DOTS
SCALABLE_MATRICES = aarch64.MATRICES
MATRIX_ROWS = aarch64.ROWS
FLIPPED = {"s8": "u8", "u8": "s8"}
HALF_RANGE = 128  # a ^ 0x80 is a + 128 of a signed byte, a - 128 of an unsigned one


@dataclass(frozen=True)
class DotUse:
    """How an instruction multiplies operands of given types.

    swapped: the left operand is the instruction's second.  flipped: the left operand
    has its sign bits inverted first, which adds to every sum what `correction` times
    the sum of the right operand takes away again; exact modulo 2^32.
    """

    dot: Instruction
    swapped: bool = False
    flipped: bool = False
    correction: int = 0


def dot_for(target: Target, left: str, right: str) -> DotUse | None:
    """The target's instruction for these element types, None if it has none."""
    wide = (dot for dot in DOTS if dot.bits == target.vector.bits)
    return dot_use_of(target, wide, left, right)


def scalable_dot(target: Target, left: str, right: str) -> DotUse | None:
    """The same of registers whose width the machine tells.

    Where that is known, those of 128 bits are as fast, and their panels woven before.
    """
    if not target.vector.any_length:
        return None
    return dot_use_of(target, SCALABLE_DOTS, left, right)


def scalable_matrix(target: Target, left: str, right: str) -> DotUse | None:
    """The instruction for two rows at once, with signs as they are."""
    if not target.vector.any_length:
        return None
    use = dot_use_of(target, SCALABLE_MATRICES, left, right)
    return None if use is None or use.flipped else use


def scalable_uses(target: Target, left: str, right: str) -> tuple[DotUse, ...]:
    """Both, those of more steps at once first."""
    found = scalable_matrix(target, left, right), scalable_dot(target, left, right)
    return tuple(use for use in found if use is not None)


def dot_use_of(
    target: Target, instructions: Iterable[Instruction], left: str, right: str
) -> DotUse | None:
    """The first of a target's instructions that multiplies these, with inverted signs
    if there is none without."""
    known = [dot for dot in instructions if dot.is_of(target)]
    for flipped in (False, True):
        one = FLIPPED.get(left, "") if flipped else left
        for dot in known:
            for swapped in (False, True)[: 1 + dot.swaps]:
                takes = (dot.right, dot.left) if swapped else (dot.left, dot.right)
                if takes == (one, right):
                    added = 0 if not flipped else correction(left)
                    return DotUse(dot, swapped and one != right, flipped, added)
    return None


def plain_dot(target: Target, left: str, right: str) -> DotUse | None:
    """The instruction that multiplies numbers as they are; None if there is none."""
    use = dot_for(target, left, right)
    return None if use is None or use.flipped else use


def correction(left: str) -> int:
    """What takes back the flipped sign bits of a left operand of this type."""
    return -HALF_RANGE if left == "s8" else HALF_RANGE


def of_width(
    target: Target, instructions: Iterable[Instruction], bits: int
) -> Instruction | None:
    """A target's instruction on registers of so many bits."""
    found = (x for x in instructions if x.bits == bits and x.is_of(target))
    return next(found, None)


def number_product(
    target: Target, left: str, right: str, sums: str
) -> Instruction | None:
    """What adds a vector's products by a number to sums of a wider type."""
    for x in riscv64.NUMBER_PRODUCTS:
        if (x.left, x.right, x.sums) == (left, right, sums) and x.is_of(target):
            return x
    return None


def widens_products(target: Target, element: str) -> bool:
    """Whether one adds products of this type of 16 bits to f32."""
    return number_product(target, element, element, "f32") is not None


def pair_products(target: Target) -> Instruction | None:
    """What adds two neighbouring products of 16-bit numbers."""
    return of_width(target, x86.PAIR_PRODUCTS, target.vector.bits)


def pair_use(target: Target, left: str, right: str) -> DotUse | None:
    """How it multiplies operands of these types, which are extended to its own."""
    found = pair_products(target)
    fits = found is not None and max(BITS[left], BITS[right]) <= BITS[found.right]
    return DotUse(found) if found is not None and fits else None


def extremes_of(target: Target) -> tuple[Extreme, ...]:
    """What gives the larger or the smaller float."""
    known = EXTREMES.get(target.arch, ())
    return tuple(x for x in known if x.instruction.is_of(target))


def scales_of(target: Target) -> tuple[Instruction, ...]:
    """What multiplies by powers of two."""
    return tuple(x for x in x86.SCALES if x.is_of(target))


def differing_bits(target: Target, left: str, right: str) -> DotUse | None:
    """What adds the number of bits that differ."""
    return dot_use_of(target, DIFFERING_BITS, left, right)


def counts_words(target: Target) -> bool:
    """Whether an instruction counts the ones of 32 bits (vpopcntd)."""
    return any(count.is_of(target) for count in x86.POPCOUNTS)


def counts_at_once(target: Target) -> bool:
    """Whether one does for words or bytes."""
    return counts_words(target) or aarch64.POPCOUNT.is_of(target)
