"""The default schedule of a kernel: what is known to be fast for its root."""

from __future__ import annotations

from nanoloom.kernels.program import Kernel
from nanoloom.kernels.structure import Kind, is_contraction
from nanoloom.mlir import ir, named
from nanoloom.schedule.language import Choice, Loops, Schedule
from nanoloom.schedule.library.attention import attention
from nanoloom.schedule.library.contraction import contraction
from nanoloom.schedule.library.marks import last_operation, mark
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
    if kernel.root == Kind.ATTENTION.value:
        return Choice(attention(module, last, target))
    if kernel.root == Kind.CONTRACTION.value and root is not None:
        mark(root, "root")
        choice = contraction(module, root, last, target)
        if choice is not None:
            return choice
    return Choice(by_rows(kernel, module, last))
