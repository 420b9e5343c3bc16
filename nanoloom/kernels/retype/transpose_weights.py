"""Weights of products along the columns of the result, for vectors of any width.

    y[m, n] = sum over k of x[m, k] * w[n, k]   ->   ... * w'[k, n]

Nanokernels pack their weights in panels as wide as their vectors are.  Where nobody
knows how wide that is before the program runs, weights are read as they lie: one copy
of them serves every width, if their columns are side by side.
"""

from __future__ import annotations

from dataclasses import replace

from nanoloom.ir.contraction import analyse
from nanoloom.ir.linalg_query import Op, inputs, map_dims, maps
from nanoloom.ir.make_generic import element_type, set_maps
from nanoloom.ir.mlir import ir
from nanoloom.kernels.retype.parameters import Parameters
from nanoloom.kernels.retype.precision import elements, products
from nanoloom.linalg.stage import LinalgModule
from nanoloom.weights.derivations import Transposed

# Operands and sums of what has such vectors.
TURNED = {
    ("f32", "f32", "f32"),
    ("f64", "f64", "f64"),
    ("bf16", "bf16", "f32"),
    ("f16", "f16", "f32"),
    ("i8", "i8", "i32"),
    ("i8", "i16", "i32"),
}


def transpose_weights(lowered: LinalgModule) -> LinalgModule:
    """Lay the weights of products along the columns; raises nothing."""
    known = Parameters(lowered)
    for op in products(lowered):
        if tuple(elements(op)) in TURNED:
            transpose_weight(op, known)
    made = replace(lowered, parameters=known.finish())
    lowered.module.operation.verify()
    return made


def transpose_weight(op: Op, known: Parameters) -> None:
    """Let a product read its weight turned, if it has one that lies otherwise."""
    shape = analyse(op)
    if shape is None or shape.contiguous:
        return
    value, indexings = inputs(op)[shape.right], maps(op)
    weight, dims = known.parameter_of(value), map_dims(indexings[shape.right])
    order = [d for d in (*shape.shared, *shape.reduced, shape.column) if d in dims]
    if weight is None or len(dims) != len(order):
        return
    turned = weight.then(Transposed(tuple(dims.index(d) for d in order)))
    op.operation.operands[shape.right] = known.parameter(
        turned, element_type(value.type)
    )
    count = indexings[0].n_dims
    places = [ir.AffineDimExpr.get(d) for d in order]
    indexings[shape.right] = ir.AffineMap.get(count, 0, places)
    set_maps(op, indexings)
