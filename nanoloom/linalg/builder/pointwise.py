"""A `linalg.generic` without a reduction, from values: what later stages insert."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nanoloom.ir.make_generic import NOTHING, Words, make_generic
from nanoloom.ir.mlir import ir, linalg

Body = Callable[..., ir.Value]


def pointwise(
    sources: Sequence[ir.Value],
    target: ir.Value,
    body: Body,
    reading: Sequence[ir.AffineMap] = (),
    writing: ir.AffineMap | None = None,
    words: Words = NOTHING,
) -> ir.Value:
    """target[writing(i...)] = body(sources[reading(i...)]...)

    All maps are identities by default.  words: attributes of the
    operation.  Gives the tensor that is made, the target itself where it is a buffer.
    """
    rank = reading[0].n_dims if reading else ir.ShapedType(target.type).rank
    same = ir.AffineMap.get_identity(rank)
    indexings = [*(reading or [same] * len(sources)), writing or same]
    made = make_generic(sources, [target], indexings, ["parallel"] * rank, words)
    block = made.operation.regions[0].blocks[0]
    with ir.InsertionPoint(block):
        linalg.YieldOp([body(*list(block.arguments)[: len(sources)])])
    results = list(made.operation.results)
    return results[0] if results else target


def itself(value: ir.Value) -> ir.Value:
    """The body of a copy."""
    return value
