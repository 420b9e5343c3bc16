"""The pass: math operations on f32 become arithmetic, so that no libm call is left.

Those on f64 do so in the vector stage, which knows the target: a fused multiply-add
that is a call costs as much as libm's function.
"""

from __future__ import annotations

from collections.abc import Callable, Container

from nanoloom.ir.mlir import arith, ir, named
from nanoloom.linalg.builder.scalar import NONPOSITIVE
from nanoloom.target.facts import Target
from nanoloom.vector.math.exp import exp_nonpositive
from nanoloom.vector.math.table import EXPANSIONS
from nanoloom.vector.widths import element_of, with_element

# MLIR lowers them to log(1 + x) and exp(x) - 1, which lose the digits of small x.
INEXACT = ("math.expm1", "math.log1p")


def expand_math(module: ir.Module) -> None:
    """Replace every math operation on f32, f16 or bf16, scalar or vector, in place.

    f16 and bf16 are extended to f32 and truncated back.  f64 (but for what MLIR would
    lower inexactly), tensors and operations that are instructions anyway stay.
    """
    _expand_all(module, lambda op: _is_expanded(op, INEXACT))


def expand_doubles(module: ir.Module, target: Target) -> None:
    """Replace the math operations on f64 that have an expansion, where it pays."""
    if target.fuses:
        _expand_all(module, lambda op: _is_double(op) and _is_expanded(op, EXPANSIONS))


def _expand_all(module: ir.Module, chosen: Callable[[ir.OpView], bool]) -> None:
    # Collected first: erasing during a walk would leave handles to freed operations.
    for op in filter(chosen, named(module, *EXPANSIONS)):
        with ir.InsertionPoint(op), op.operation.location:
            made = _expand(op.operation)
        op.operation.results[0].replace_all_uses_with(made)
        op.operation.erase()


def _is_double(op: ir.OpView) -> bool:
    return isinstance(element_of(op.operation.results[0].type), ir.F64Type)


def _is_expanded(op: ir.OpView, of_f64: Container[str]) -> bool:
    expansion = EXPANSIONS[op.operation.name]
    if expansion.native:
        return False
    if _is_double(op):
        return expansion.ulp_f64 is not None and op.operation.name in of_f64
    element = element_of(op.operation.results[0].type)
    return isinstance(element, (ir.F32Type, ir.F16Type, ir.BF16Type))


def _expand(op: ir.Operation) -> ir.Value:
    build = EXPANSIONS[op.name].build
    if NONPOSITIVE in op.attributes:
        build = exp_nonpositive
    kind = op.results[0].type
    if isinstance(element_of(kind), (ir.F32Type, ir.F64Type)):
        return build(*op.operands)
    wide = with_element(kind, ir.F32Type.get())
    return arith.truncf(kind, build(*(arith.extf(wide, x) for x in op.operands)))
