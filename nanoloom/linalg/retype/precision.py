"""`--precision bf16`: contractions multiply bf16 numbers and add in f32.

    f32 = contract(a: f32, b: f32)   ->   f32 = contract(bf16(a), bf16(b))

where its last sum has LEAST numbers or more: shorter ones gain nothing.
Weights are converted once, while compiling; activations where they are made, those of
attention included.  Sums, softmax, normalization and everything else stay in f32.
Never chosen silently.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from nanoloom.linalg.retype.retyped import Retyped
from nanoloom.linalg.stage import LinalgModule
from nanoloom.linalg.words.scalar import BFLOAT16
from nanoloom.mlir import arith, ir, named

IsProduct = Callable[[ir.OpView], bool]
# A nanokernel takes several numbers at once, tile registers up to 32 in the same time.
# Over fewer of them multiply-adds in f32 are faster, measured on channels of images.
LEAST = 8


def to_bf16(lowered: LinalgModule, is_product: IsProduct) -> LinalgModule:
    """Lower the precision of every long sum that is_product says yes to.

    Raises nothing.
    """
    narrow = Retyped(lowered, ir.BF16Type.get(), BFLOAT16)
    for op in products(lowered, is_product):
        kinds = [ir.RankedTensorType(v.type) for v in op.operation.operands]
        all_f32 = all(str(k.element_type) == "f32" for k in kinds)
        if all_f32 and last_extent(op, kinds) >= LEAST:
            narrow.sum_of(op, add_up)
    made = replace(lowered, parameters=narrow.finish())
    lowered.module.operation.verify()
    return made


def products(lowered: LinalgModule, is_product: IsProduct) -> list[ir.OpView]:
    """The products of a module's own, not those within loops and branches."""
    return [
        op
        for op in named(lowered.module, "linalg.generic")
        if (top := op.operation.parent) is not None
        and top.name == "func.func"
        and is_product(op)
    ]


def add_up(left: ir.Value, right: ir.Value, before: ir.Value) -> ir.Value:
    """before + f32(left) * f32(right)"""
    f32 = ir.F32Type.get()
    wide = arith.extf(f32, left), arith.extf(f32, right)
    return arith.addf(before, arith.mulf(*wide))


def last_extent(op: ir.OpView, kinds: list[ir.RankedTensorType]) -> int:
    """The extent of the last reduced dimension, 0 if no operand says it."""
    iterators = [str(a) for a in op.operation.attributes["iterator_types"]]  # type: ignore[union-attr]
    reduced = [d for d, text in enumerate(iterators) if "reduction" in text]
    for kind, attribute in zip(
        kinds,
        op.operation.attributes["indexing_maps"],
        strict=True,  # type: ignore[arg-type]
    ):
        for size, expr in zip(kind.shape, attribute.value.results, strict=True):
            if isinstance(expr, ir.AffineDimExpr) and expr.position == reduced[-1]:
                return size
    return 0
