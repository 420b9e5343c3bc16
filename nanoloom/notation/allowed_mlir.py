"""What MLIR text may hold: operations and types that the stages behind it take."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import prod

import numpy as np

from nanoloom.errors import Unsupported
from nanoloom.frontend.memory_claims import available_memory, in_words
from nanoloom.ir.mlir import ir, operations
from nanoloom.linalg.builder.scalar import BFLOAT16
from nanoloom.notation.functions_table import ELEMENTS

NAMES = {
    "builtin": "module",
    "func": "func return",
    "linalg": "generic index yield",
    "tensor": """
        empty extract extract_slice insert_slice expand_shape collapse_shape
        """,
    "scf": "if for yield",
    "arith": """
        constant select bitcast index_cast index_castui
        addf subf mulf divf remf negf maximumf minimumf maxnumf minnumf cmpf
        addi subi muli divsi divui remsi remui maxsi maxui minsi minui cmpi
        andi ori xori shli shrsi shrui
        extf truncf extsi extui trunci sitofp uitofp fptosi fptoui
        """,
    "math": """
        absf absi ceil floor trunc round roundeven copysign ctpop fma
        exp exp2 expm1 log log1p log2 log10 erf erfc tanh sqrt rsqrt cbrt powf
        sin cos tan asin acos atan atan2 sinh cosh asinh acosh atanh
        """,
}
OPERATIONS = frozenset(
    f"{dialect}.{name}" for dialect, names in NAMES.items() for name in names.split()
)
DIALECTS = "linalg on tensors, tensor, arith, math and scf, in one func.func"
LINE = re.compile(r'":(\d+):\d+')
SCALARS = ("i1", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64", "index")


def line_of(location: object) -> int | None:
    """The line of a file's location, None for any other."""
    found = LINE.search(str(location))
    return int(found[1]) if found else None


def dtype_of(kind: ir.Type) -> np.dtype | None:
    """numpy's element type of tensors, integers with sign; None if there is none."""
    names = {
        "f32": "float32",
        "f64": "float64",
        "f16": "float16",
        **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    }
    if str(kind) == "bf16":
        return BFLOAT16
    name = names.get(str(kind))
    return next((each for each in ELEMENTS if each.name == name), None)


def require_operations(module: ir.Module, where: Callable[[object], str]) -> None:
    """Raise Unsupported for the first operation or type that is not taken."""
    memory = available_memory()
    for op in operations(module, lambda _: True):
        here, name = where(op.operation.location), op.operation.name
        if name not in OPERATIONS:
            raise Unsupported(
                f"{name} is not supported", where=here, hint=f"write {DIALECTS}"
            )
        regions = [list(region.blocks) for region in op.operation.regions]
        if any(len(blocks) > 1 for blocks in regions):
            raise Unsupported(f"{name} has several blocks", where=here)
        blocks = [block for blocks in regions for block in blocks]
        values = [*op.operation.results, *(a for b in blocks for a in b.arguments)]
        for value in values:
            require_type(value.type, here, memory)
        if name == "linalg.generic":
            require_maps(op, here)
        if name in ("tensor.extract_slice", "tensor.insert_slice"):
            tensors = 1 if name == "tensor.extract_slice" else 2
            if len(list(op.operation.operands)) > tensors:
                raise Unsupported(
                    f"{name} at a place or of a size that is not a number", where=here
                )


def require_type(kind: ir.Type, where: str, memory: int) -> None:
    """Raise Unsupported for a type that is no static tensor and no number.

    memory: bytes that there are.
    """
    if str(kind) in SCALARS:
        return
    if not isinstance(kind, ir.RankedTensorType):
        raise Unsupported(
            f"the type {kind} is not supported",
            where=where,
            hint="write ranked tensors of numbers",
        )
    if not kind.has_static_shape or 0 in kind.shape:
        raise Unsupported(
            f"the type {kind} has a dimension that is no number from 1 on",
            where=where,
            hint="write the sizes",
        )
    dtype = dtype_of(kind.element_type)
    if dtype is None:
        known = ", ".join(name for name in SCALARS if name not in ("i1", "index"))
        raise Unsupported(
            f"the type {kind} is not supported",
            where=where,
            hint=f"write tensors of {known}",
        )
    need = prod(kind.shape) * dtype.itemsize
    if need > memory:
        raise Unsupported(
            f"{kind} needs {in_words(need)}, {in_words(memory)} of memory are free",
            where=where,
        )


def require_maps(op: ir.OpView, where: str) -> None:
    """Raise Unsupported for indices that tiles cannot be cut of."""
    words = op.operation.attributes
    maps = [attribute.value for attribute in words["indexing_maps"]]  # type: ignore[union-attr]
    inputs = int(words["operandSegmentSizes"][0])  # type: ignore[index]
    for indexing in maps:
        if not all(is_rising(expr) for expr in indexing.results):
            raise Unsupported(
                f"an index of {indexing} is no sum of loops times positive numbers",
                where=where,
            )
    for indexing in maps[inputs:]:
        dims = [e for e in indexing.results if isinstance(e, ir.AffineDimExpr)]
        if len({e.position for e in dims}) != len(indexing.results):
            raise Unsupported(
                f"a result is written through {indexing}",
                where=where,
                hint="let each of its indices be a loop of its own",
            )


def is_rising(expr: ir.AffineExpr) -> bool:
    """Whether an affine expression is a sum of dimensions times positive numbers."""
    if isinstance(expr, ir.AffineDimExpr):
        return True
    if isinstance(expr, ir.AffineConstantExpr):
        return expr.value >= 0
    if isinstance(expr, ir.AffineAddExpr | ir.AffineMulExpr):
        return is_rising(expr.lhs) and is_rising(expr.rhs)
    return False
