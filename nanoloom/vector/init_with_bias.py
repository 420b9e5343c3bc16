"""A sum begins with what is added to it behind.

    t = 0 + sum(f(i, k));  y = g(t + b[i])  ->  t = b[i] + sum(f(i, k));  y = g(t)

It has the terms that it had, and an addition less.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nanoloom.vector.body import takes_any
from nanoloom.vector.guarded_operand import is_zero

if TYPE_CHECKING:
    from nanoloom.vector.register_tile import RegisterTile


def init_with_bias(reader: RegisterTile, number: int, sums: RegisterTile) -> int | None:
    """Which input of a reader its operand, a sum that it alone reads, begins with; the
    reader no longer adds it.  None where it adds none, or the sum is no such.

    Not what is computed at the tile: that may read the sum itself.
    """
    if not sums.reduced or not takes_any(sums.block) or not begins_with_zero(sums):
        return None
    arguments = list(reader.block.arguments)
    uses = [use.owner.operation for use in arguments[number].uses]
    if len(uses) != 1 or uses[0].name != "arith.addf":
        return None
    for other, argument in enumerate(arguments[: len(reader.inputs)]):
        served = other == number or other in reader.sources
        if argument in list(uses[0].operands) and not served:
            uses[0].results[0].replace_all_uses_with(arguments[number])
            uses[0].erase()
            return other
    return None


def begins_with_zero(sums: RegisterTile) -> bool:
    """Whether a sum of one result begins with nothing."""
    (start,) = sums.starts
    return start is not None and is_zero(start)
