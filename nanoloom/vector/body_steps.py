"""The operations of a body as Python's values, read once for all points.

A body is written out for each point of a tile, and each question to MLIR costs: what an
operation is called, what it takes, whether a product is added to a sum.

    p = a * b;  s = sum + p  ->  s = fma(a, b, sum)      p has no other use
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from nanoloom.ir.mlir import ir


@dataclass(frozen=True, eq=False)
class BodyStep:
    """An operation with what it takes and makes.

    is_product: of a later sum, which multiplies by itself.  is_fused: such a sum, whose
    operands are the factors and what they are added to.
    """

    operation: ir.Operation
    name: str
    operands: tuple[ir.Value, ...]
    results: tuple[ir.Value, ...]
    is_product: bool = False
    is_fused: bool = False


def steps_of(block: ir.Block, sums: Collection[ir.Value]) -> list[BodyStep]:
    """A body's operations; sums: its arguments that products are added to at once."""
    made: list[BodyStep] = []
    for op in block.operations:
        step = read(op.operation)
        found = product_of(step, sums) if sums and step.name == "arith.addf" else None
        if found is not None:
            product, sum_ = found
            number = [s.operation for s in made].index(product)
            factors = made[number].operands
            made[number] = read(product, is_product=True)
            step = read(op.operation, (*factors, sum_), is_fused=True)
        made.append(step)
    return made


def read(
    op: ir.Operation,
    operands: tuple[ir.Value, ...] | None = None,
    *,
    is_product: bool = False,
    is_fused: bool = False,
) -> BodyStep:
    given = tuple(op.operands) if operands is None else operands
    return BodyStep(op, op.name, given, tuple(op.results), is_product, is_fused)


def product_of(
    step: BodyStep, sums: Collection[ir.Value]
) -> tuple[ir.Operation, ir.Value] | None:
    """A product that has no other use, and the sum it is added to, one of `sums`."""
    found = [v for v in step.operands if v not in sums]
    if len(found) != 1 or isinstance(found[0].owner, ir.Block):
        return None
    product = found[0].owner
    if product.name != "arith.mulf" or len(list(found[0].uses)) != 1:
        return None
    (sum_,) = (v for v in step.operands if v in sums)
    return product, sum_
