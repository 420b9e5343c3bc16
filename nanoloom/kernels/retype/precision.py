"""`--precision bf16`: contractions multiply bf16 numbers and add in f32.

    f32 = contract(a: f32, b: f32)   ->   f32 = contract(bf16(a), bf16(b))

where LEAST numbers or more of its sum lie together, as those of an image's neighbours
in a row do: shorter ones gain nothing.
Weights are converted once, while compiling; activations where they are made, those of
attention included.  Sums, softmax, normalization and everything else stay in f32, but
for residual sums of what products read, too (round_once.py).  Never chosen silently.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from nanoloom.ir.contraction import is_product
from nanoloom.ir.linalg_query import Op, extents, iterators
from nanoloom.ir.make_generic import element_type
from nanoloom.ir.mlir import arith, ir, named
from nanoloom.kernels.retype.merge_taps import in_rows, rows_of_taps
from nanoloom.kernels.retype.retyped import Retyped
from nanoloom.kernels.retype.round_once import round_once
from nanoloom.linalg.builder.scalar import BFLOAT16
from nanoloom.linalg.stage import LinalgModule

# A nanokernel takes several numbers at once, tile registers up to 32 in the same time.
# Over fewer of them multiply-adds in f32 are faster, measured on channels of images.
LEAST = 8


def to_bf16(lowered: LinalgModule) -> LinalgModule:
    """Lower the precision of every long product; raises nothing."""
    narrow = Retyped(lowered, ir.BF16Type.get(), BFLOAT16)
    for op in products(lowered):
        if set(elements(op)) != {"f32"}:
            continue
        if extents(op)[reduced(op)[-1]] >= LEAST:
            narrow.sum_of(op, add_up)
        elif (found := rows_of_taps(op, narrow)) and found.together >= LEAST:
            narrow.sum_of(in_rows(found, narrow), add_up)
    round_once(narrow)
    made = replace(lowered, parameters=narrow.finish())
    lowered.module.operation.verify()
    return made


def products(
    lowered: LinalgModule, wanted: Callable[[Op], bool] = lambda _: True
) -> list[Op]:
    """The products of a module's own, not those within loops and branches.

    wanted: a question that takes less time than whether it is a product.
    """
    return [
        op
        for op in named(lowered.module, "linalg.generic")
        if (top := op.operation.parent) is not None
        and top.name == "func.func"
        and wanted(op)
        and is_product(op)
    ]


def add_up(left: ir.Value, right: ir.Value, before: ir.Value) -> ir.Value:
    """before + f32(left) * f32(right)"""
    f32 = ir.F32Type.get()
    wide = arith.extf(f32, left), arith.extf(f32, right)
    return arith.addf(before, arith.mulf(*wide))


def elements(op: Op) -> list[str]:
    """Types of the operands' numbers, the sums' last."""
    return [str(element_type(value.type)) for value in op.operation.operands]


def reduced(op: Op) -> list[int]:
    """The dimensions that a product sums over."""
    return [d for d, kind in enumerate(iterators(op)) if kind == "reduction"]
