"""The order of a nanokernel's instructions, and the stores over its edges."""

from __future__ import annotations

from dataclasses import replace

from nanoloom.schedule.directives.nanokernel import FRONT, Nanokernel
from nanoloom.schedule.families import (
    BF16_DOT,
    BIT_COUNTS,
    BIT_PAIRS,
    BIT_TABLES,
    INT8_DOT,
    INT8_INNER,
    INT8_LANES,
    INT8_PAIRS,
    INT16_PAIRS,
    Family,
)
from nanoloom.target.facts import Target
from nanoloom.target.instructions.x86 import BROADCAST_BITS

# Of numbers that lie together in groups of steps: their products have no broadcasts.
GROUPED = (
    BF16_DOT,
    INT8_DOT,
    INT8_INNER,
    INT8_PAIRS,
    INT16_PAIRS,
    INT8_LANES,
    BIT_PAIRS,
    BIT_TABLES,
    BIT_COUNTS,
)


def in_order(
    plan: Nanokernel, family: Family, columns: int, bits: int, target: Target
) -> Nanokernel:
    """A nanokernel with what it says of its instructions' order.

    columns: of the product.  bits: of a sum.

    LLVM is left alone where rows are interleaved under masks: it would double each of
    them before, which is 20 % slower on AVX-512 (s8 and u8, 127x333x517).  A row's
    number is kept where its only product would take its register: the sums would go
    round through the registers, and LLVM spills one to put them back.
    """
    over = columns % (plan.vectors * plan.lanes.count) > 0
    masked = not plan.packed and over and plan.copy_rhs != FRONT
    grouped = family in GROUPED
    scalar = target.is_scalar
    ordered = (plan.hold_lhs or not (grouped and masked)) and not scalar
    few = grouped and not plan.packed and plan.rows < plan.vectors
    short = plan.lanes.count * bits < BROADCAST_BITS
    return replace(
        plan,
        hold_lhs=plan.hold_lhs or (few and ordered),
        pin_order=ordered,
        keep_broadcast_live=not grouped and plan.vectors == 1 and short and not scalar,
        unfused_mul_add=ordered and not target.fuses,
        unmasked_fast_path=not target.vector.mask_registers,
    )
