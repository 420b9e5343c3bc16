"""The pass: math operations on f32 become arithmetic, so that no libm call is left.

Of those on f64 the ones that MLIR would lower inexactly (double.py).
"""

from __future__ import annotations

from nanoloom.ir.mlir import arith, ir, named
from nanoloom.linalg.builder.scalar import NONPOSITIVE
from nanoloom.vector.math.double import OF_DOUBLES
from nanoloom.vector.math.exp import exp_nonpositive
from nanoloom.vector.math.table import EXPANSIONS
from nanoloom.vector.widths import element_of, with_element


def expand_math(module: ir.Module) -> None:
    """Replace every math operation on f32, f16 or bf16, scalar or vector, in place.

    f16 and bf16 are extended to f32 and truncated back.  Most of f64, tensors and
    operations that are instructions anyway stay as they are.
    """
    # Collected first: erasing during a walk would leave handles to freed operations.
    for op in filter(_is_expanded, named(module, *EXPANSIONS)):
        with ir.InsertionPoint(op), op.operation.location:
            made = _expand(op.operation)
        op.operation.results[0].replace_all_uses_with(made)
        op.operation.erase()


def _is_expanded(op: ir.OpView) -> bool:
    expansion = EXPANSIONS.get(op.operation.name)
    if expansion is None or expansion.native:
        return False
    element = element_of(op.operation.results[0].type)
    if isinstance(element, ir.F64Type):
        return op.operation.name in OF_DOUBLES
    return isinstance(element, (ir.F32Type, ir.F16Type, ir.BF16Type))


def _expand(op: ir.Operation) -> ir.Value:
    build = EXPANSIONS[op.name].build
    if NONPOSITIVE in op.attributes:
        build = exp_nonpositive
    kind = op.results[0].type
    if isinstance(element_of(kind), ir.F64Type):
        return OF_DOUBLES[op.name](*op.operands)
    if isinstance(element_of(kind), ir.F32Type):
        return build(*op.operands)
    wide = with_element(kind, ir.F32Type.get())
    return arith.truncf(kind, build(*(arith.extf(wide, x) for x in op.operands)))
