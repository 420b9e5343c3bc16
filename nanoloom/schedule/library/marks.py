"""How a schedule finds operations again: by discardable attributes."""

from __future__ import annotations

from nanoloom.kernels.structure import Op, is_generic
from nanoloom.mlir import ir


def mark(op: Op, name: str) -> None:
    op.operation.attributes[f"nanoloom.{name}"] = ir.UnitAttr.get()


def last_operation(module: ir.Module) -> Op | None:
    """The generic whose results the kernel returns, all of them."""
    block = module.body.operations[0].operation.regions[0].blocks[0]
    returned = list(list(block.operations)[-1].operation.operands)
    owner = returned[0].owner
    if any(value.owner != owner for value in returned):
        return None
    if isinstance(owner, ir.Block) or not is_generic(owner.opview):
        return None
    return owner.opview
