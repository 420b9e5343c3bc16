"""Weights as f32, where no instruction multiplies them as they are.

    f32 = contract(x: bf16, w: bf16)   ->   f32 = contract(f32(x), w as f32)

Every product is the same: f32 has all numbers of narrower floats.  Taking them apart in
the inner loop costs a quarter of the time (single_products.py), unless there are so few
rows that weights come from memory no faster than they are used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod

import numpy as np

from nanoloom.ir.linalg_query import Op, all_dims, extents, maps
from nanoloom.ir.make_generic import element_type
from nanoloom.ir.mlir import arith, ir
from nanoloom.kernels.retype.precision import products
from nanoloom.kernels.retype.retyped import Retyped
from nanoloom.linalg.stage import LinalgModule

F32 = 32  # bits
ROWS = 16  # that share a weight: for fewer half the bytes are faster, measured


def widen(lowered: LinalgModule, multiplies: Callable[[str], bool]) -> LinalgModule:
    """Give products with a weight their operands in f32.

    multiplies: whether the target has instructions for products of a type.
    """
    wide = Retyped(lowered, ir.F32Type.get(), np.dtype(np.float32))

    def asked(op: Op) -> bool:
        one, *others = (element_type(v.type) for v in op.operation.operands)
        narrow = isinstance(one, ir.FloatType) and one.width < F32
        return narrow and others == [one, wide.element] and not multiplies(str(one))

    for op in products(lowered, asked):
        if rows(op, wide) >= ROWS:
            wide.sum_of(op, add_up)
    made = replace(lowered, parameters=wide.finish())
    lowered.module.operation.verify()
    return made


def add_up(left: ir.Value, right: ir.Value, before: ir.Value) -> ir.Value:
    """before + left * right"""
    return arith.addf(before, arith.mulf(left, right))


def rows(op: Op, wide: Retyped) -> int:
    """Results that a number of the only weight among the operands adds to, else 0."""
    operands = list(op.operation.operands)
    weights = [wide.parameter_of(v) is not None for v in operands[:2]]
    if sum(weights) != 1:
        return 0
    *given, result = maps(op)
    read, sizes = all_dims(given[weights.index(True)]), extents(op)
    return prod(sizes[dim] for dim in all_dims(result) - read)
