"""exp by a target's own product with a power of two, where it has one.

The same numbers as without (exp.py): a product that is rounded once.  Lanes of other
numbers than the instruction's, and single numbers, are left for `expand_math`.
"""

from __future__ import annotations

from collections.abc import Callable

from nanoloom.ir.mlir import ir, named
from nanoloom.linalg.builder.scalar import NONPOSITIVE
from nanoloom.target.facts import Target
from nanoloom.target.instructions.choose import scales_of
from nanoloom.target.instructions.instruction import Instruction
from nanoloom.vector.math.exp import exp_of
from nanoloom.vector.math.lanes import Lanes
from nanoloom.vector.nanokernel.instructions import emit_with
from nanoloom.vector.widths import is_scalable


def scale_powers(module: ir.Module, target: Target) -> None:
    """Expand exp of vectors that a target's instruction scales."""
    known = scales_of(target)
    for op in named(module, "math.exp"):
        if NONPOSITIVE in op.operation.attributes:
            continue
        (x,) = op.operation.operands
        found = next((s for s in known if takes(s, x.type)), None)
        if found is None:
            continue
        with ir.InsertionPoint(op), op.operation.location:
            made = exp_of(Lanes(x), scaled_by(found))
        op.operation.results[0].replace_all_uses_with(made.value)
        op.operation.erase()


def takes(scale: Instruction, kind: ir.Type) -> bool:
    """Whether an instruction is for vectors of this type."""
    if not isinstance(kind, ir.VectorType) or kind.rank != 1 or is_scalable(kind):
        return False
    return scale.result == f"{kind.element_type}*{kind.shape[0]}"


def scaled_by(scale: Instruction) -> Callable[[Lanes, Lanes], Lanes]:
    """A number times 2^k, k whole."""

    def scaled(x: Lanes, k: Lanes) -> Lanes:
        given = [x.value, k.value, x.value]
        return Lanes(emit_with(scale, x.kind, given, scale.words))

    return scaled
