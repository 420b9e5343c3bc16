"""Single instructions: operations of MLIR's x86 dialect, or LLVM intrinsics.

An intrinsic's call counts as touching memory until it is LLVM's, which bufferization
refuses; so a cast without meaning stands for it until there are buffers.
"""

from __future__ import annotations

from nanoloom.mlir import ir, llvm, named
from nanoloom.target.dots import Dot

CALL = "builtin.unrealized_conversion_cast"
NAME = "nanoloom.instruction"  # on it: the intrinsic's name


def dot(kind: Dot, sums: ir.Value, left: ir.Value, right: ir.Value) -> ir.Value:
    """sums + left . right, lane by lane, in one instruction."""
    return instruction(kind.function, sums.type, [sums, left, right])


def instruction(name: str, result: ir.Type, operands: list[ir.Value]) -> ir.Value:
    """An operation of the x86 dialect or an intrinsic (llvm. ...), on values alone."""
    if not name.startswith("llvm."):
        return ir.Operation.create(name, [result], operands).results[0]
    attributes: dict[str, ir.Attribute] = {NAME: ir.StringAttr.get(name)}
    return ir.Operation.create(CALL, [result], operands, attributes).results[0]


def is_instruction(op: ir.OpView) -> bool:
    return NAME in op.operation.attributes


def call_intrinsics(module: ir.Module) -> None:
    """Make the calls that casts stand for; behind all work on buffers."""
    for op in named(module, CALL):
        if not is_instruction(op):
            continue
        name = op.operation.attributes[NAME].value  # type: ignore[attr-defined]
        result = op.operation.results[0]
        operands = list(op.operation.operands)
        with ir.InsertionPoint(op), op.operation.location:
            made = llvm.call_intrinsic(result.type, name, operands, [], [])  # type: ignore[arg-type]
        result.replace_all_uses_with(made)
        op.operation.erase()
