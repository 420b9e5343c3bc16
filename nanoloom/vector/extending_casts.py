"""Numbers that a body extends before it does anything else with them."""

from __future__ import annotations

from nanoloom.ir.mlir import ir
from nanoloom.nest.reduction import WIDENING


def extended(argument: ir.Value, number: ir.Value) -> ir.Value:
    """A number as a body takes it: extended, if that is all that is done with it.

    Of a byte to 16 bits, which hold it with either sign: RISC-V multiplies those, and
    adds to sums of 32.
    """
    user = widening_of(argument)
    if user is None:
        return number
    kind, byte = user.results[0].type, ir.IntegerType.get_signless(8)
    if number.type == byte and kind == ir.IntegerType.get_signless(32):
        kind = ir.IntegerType.get_signless(16)
    return ir.Operation.create(user.name, [kind], [number]).results[0]


def widening_of(argument: ir.Value) -> ir.Operation | None:
    """The extension that is all that a body does with an argument, if it is one."""
    users = [use.owner.operation for use in argument.uses]
    lone = len(users) == 1 and users[0].name in WIDENING
    return users[0] if lone else None
