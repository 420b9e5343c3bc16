"""Whether a target reads a vector in part, as at the edge of an operand."""

from __future__ import annotations

from nanoloom.target.facts import Target

WORD = 4  # bytes


def has_masked_loads(target: Target, size: int) -> bool:
    """Whether a vector of numbers of so many bytes can be read in part, by itself.

    Otherwise it is put together from single numbers.
    """
    words = target.has("avx2") and size >= WORD
    return has_mask_registers(target, size) or words


def reads_rows_in_part(target: Target, size: int = WORD) -> bool:
    """Whether vectors of a known width are read in part; size: bytes of a number."""
    return not target.vector.scalable and has_masked_loads(target, size)


def has_mask_registers(target: Target, size: int) -> bool:
    """Whether mask registers say what is read of numbers of so many bytes.

    A single one, RISC-V's, would be loaded again for every vector.  With SVE's LLVM
    reads whole registers in part: not those that smaller numbers than the sums fill.
    """
    whole = size >= WORD or not target.has("sve")
    return target.vector.mask_registers > 1 and whole
