"""nanoloom's dialect: what scripts say, and what stands for values.

    "nanoloom.packed"(%panels)        a weight in its logical form, kept in panels
    "nanoloom.instruction"(...) {name}     one instruction on vectors
    "nanoloom.in_order"(%sums..., ...)     the sums, in front of all that is read later
    "nanoloom.panel_round"(%place...)      a loop reads a panel: here a round begins
    "nanoloom.lookup"(%table, %places)     a byte of a table on a buffer for each lane

All but the last are on values alone: bufferization, canonicalization and the removal of
equal operations go on around them, until all is on buffers.  The first three touch no
memory; a round has no result and stays where it is.
"""

# No postponed annotations here: ext reads the fields' types when the class is made.
# pyright: reportInvalidTypeForm=false
from collections.abc import Sequence
from typing import Any

from nanoloom.ir.mlir import ext, ir

LOOP = "nanoloom.loop"  # on a loop: what other steps of a script call it


class Dialect(ext.Dialect, name="nanoloom"):
    """Operations written in Python."""


class PackedOp(Dialect.Operation, name="packed"):
    """A weight as the model has it; what reads it reads the panels instead."""

    logical: ext.Result[Any]
    panels: ext.Operand[Any]


class InstructionOp(Dialect.Operation, name="instruction"):
    """What an operation of the x86 dialect, or an intrinsic (llvm. ...), gives."""

    result: ext.Result[Any]
    function: ir.StringAttr
    given: Sequence[ext.Operand[Any]]


class InOrderOp(Dialect.Operation, name="in_order"):
    """As many of the operands as there are results, in an order that LLVM keeps."""

    sums: Sequence[ext.Result[Any]]
    given: Sequence[ext.Operand[Any]]


class PanelRoundOp(Dialect.Operation, name="panel_round"):
    """A round of a loop that reads a panel of an argument (panel_iteration.py)."""

    place: Sequence[ext.Operand[Any]]
    argument: ir.IntegerAttr
    extent: ir.IntegerAttr
    rounds: ir.IntegerAttr
    once: ir.IntegerAttr


class LookupOp(Dialect.Operation, name="lookup"):
    """The byte at each place of a table of 256 (table_lookups.py)."""

    result: ext.Result[Any]
    table: ext.Operand[Any]
    places: ext.Operand[Any]


PACKED, INSTRUCTION, IN_ORDER, PANEL_ROUND, LOOKUP = (
    kind.OPERATION_NAME
    for kind in (PackedOp, InstructionOp, InOrderOp, PanelRoundOp, LookupOp)
)


def make(
    name: str, results: Sequence[ir.Type], operands: Sequence[ir.Value], **words: str
) -> Sequence[ir.Value]:
    """The results of a new operation on values; words: its attributes."""
    attributes = {k: ir.StringAttr.get(word) for k, word in words.items()}
    return ir.Operation.create(name, results, operands, attributes).results  # type: ignore[arg-type]


def touch_no_memory() -> None:
    """Say so of the operations on values, in the current context."""

    class Effects(ir.MemoryEffectsOpInterface):
        @staticmethod
        def get_effects(op: Any, effects: Any) -> None:
            del op, effects

    for name in (PACKED, INSTRUCTION, IN_ORDER):
        Effects.attach(name)
