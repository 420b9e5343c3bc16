"""Numbers at one distance as a scalable vector: loads that RISC-V has (vlse).

    result[lane] = buffer[at + lane * distance]

In MLIR a gather, whose places LLVM knows again as steps of one length.
"""

from __future__ import annotations

from collections.abc import Sequence

from nanoloom.mlir import arith, ir, memref, vector
from nanoloom.vector.access import Operand, add, coefficient, index, multiply
from nanoloom.vector.body import filler


def has_distance(x: Operand, dim: int) -> bool:
    """Whether a step along a dimension is one of always the same length."""
    return all(coefficient(e, dim) is not None for e in x.indexing.results)


def read_strided(
    kind: ir.VectorType,
    x: Operand,
    dim: int,
    at: Sequence[ir.Value],
    mask: ir.Value | None,
) -> ir.Value:
    """The lanes of an operand along `dim`, from `at` on; 1 where the mask has none."""
    whole = ir.VectorType.get(
        kind.shape, ir.IntegerType.get_signless(1), scalable=kind.scalable_dims
    )
    if mask is None:
        mask = vector.broadcast(whole, arith.constant(whole.element_type, 1))
    places = ir.VectorType.get(
        kind.shape, ir.IndexType.get(), scalable=kind.scalable_dims
    )
    apart = vector.broadcast(places, distance(x, dim))
    steps = arith.muli(vector.step(places), apart)
    rest = vector.broadcast(kind, filler(kind.element_type))
    return vector.gather(kind, x.buffer, list(at), steps, mask, rest)


def distance(x: Operand, dim: int) -> ir.Value:
    """Elements between the places of two lanes."""
    known, _ = ir.MemRefType(x.buffer.type).get_strides_and_offset()
    factors = [coefficient(e, dim) or 0 for e in x.indexing.results]
    dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
    if any(f and s == dynamic for f, s in zip(factors, known, strict=True)):
        _, _, *rest = memref.ExtractStridedMetadataOp(x.buffer).results
        strides = list(rest[len(known) :])
    else:
        strides = [index(s if f else 0) for f, s in zip(factors, known, strict=True)]
    total = index(0)
    for factor, stride in zip(factors, strides, strict=True):
        if factor:
            total = add(total, multiply(stride, index(factor)))
    return total
