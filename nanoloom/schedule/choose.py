"""The default schedule of a kernel: what is known to be fast for its root."""

from __future__ import annotations

from nanoloom.kernels.program import Kernel
from nanoloom.kernels.structure import Kind, Op, is_contraction, is_generic
from nanoloom.mlir import ir, named
from nanoloom.schedule.language import Choice, Loops, Schedule
from nanoloom.schedule.library.contraction import contraction
from nanoloom.schedule.library.rows import by_rows
from nanoloom.target.facts import Target


def choose(kernel: Kernel, module: ir.Module, target: Target) -> Choice:
    """Choose and mark; `module` is the kernel's, parsed."""
    last = last_operation(module)
    if last is None:
        return Choice(Schedule((Loops(),), "no generic at its end"))
    mark(last, "last")
    root = next(
        (op for op in named(module, "linalg.generic") if is_contraction(op)), None
    )
    if kernel.root == Kind.CONTRACTION.value and root is not None:
        mark(root, "root")
        choice = contraction(module, root, last, target)
        if choice is not None:
            return choice
    return Choice(by_rows(kernel, module, last))


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
