"""Sums along vectors: one instruction multiplies and adds a group of neighbours.

    for c in groups of g: sums[c / g] += image[c..] . weights[c..]

A vector of sums has as many bytes as the operands.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from nanoloom.errors import Error
from nanoloom.ir.linalg_query import (
    Op,
    body,
    iterators,
    multiplied,
    widened,
    yielded,
)
from nanoloom.ir.loop_nest import element
from nanoloom.ir.mlir import arith, ir, made_by, vector
from nanoloom.target.facts import Target
from nanoloom.target.instructions.choose import DotUse, plain_dot
from nanoloom.target.instructions.instruction import BITS, LANE
from nanoloom.vector.nanokernel.instructions import add_products
from nanoloom.vector.vector_plan import VectorPlan
from nanoloom.vector.widths import filled


def dot_along(op: Op, plan: VectorPlan, target: Target) -> DotUse | None:
    """The instruction of a stage whose vectors, full registers, lie along its sum; None
    where none is said."""
    if not plan.instruction or iterators(op)[plan.axis] != "reduction":
        return None
    use, lanes = plain_dot(target, element(op, 0), element(op, 1)), plan.lanes
    fits = plan.stays is not None and not lanes.scalable and adds_products(op)
    if not fits or use is None or use.dot.name != plan.instruction:
        refuse_instruction(plan.instruction)
    if lanes.count % target.lanes(BITS[use.dot.right]):
        refuse_instruction(plan.instruction)
    return use


def refuse_instruction(name: str) -> NoReturn:
    raise Error(
        f"no {name} of this CPU adds the products of this stage as its operands lie",
        hint="leave the instruction out, or pack and unroll what it multiplies",
    )


def adds_products(op: Op) -> bool:
    """Whether a body is sum + a * b in i32 or f32, of both its operands."""
    arguments, total = list(body(op).arguments), made_by(yielded(op)[0])
    if len(arguments) != 3 or total is None:
        return False
    kind = str(total.results[0].type)
    if (total.name, kind) not in (("arith.addi", "i32"), ("arith.addf", "f32")):
        return False
    factors = [value for value in total.operands if value != arguments[2]]
    product = multiplied(factors[0]) if len(factors) == 1 else None
    if product is None or product.name not in ("arith.muli", "arith.mulf"):
        return False
    return {widened(value) for value in product.operands} == set(arguments[:2])


def added(
    use: DotUse, given: Sequence[ir.Value], total: ir.Value, mask: ir.Value | None
) -> ir.Value:
    """total + given[0] . given[1], a register after the other.

    given: vectors of numbers.  mask: which of them count, None for all.
    """
    if mask is not None:  # of products of zeros nothing is left
        given = [arith.select(mask, x, filled(x.type, 0)) for x in given]
    width, lanes = use.dot.bits // BITS[use.dot.right], use.dot.bits // LANE
    count = ir.VectorType(given[0].type).shape[0] // width
    for number in range(count):
        sums, left, right = (
            register(x, number, size)
            for x, size in ((total, lanes), (given[0], width), (given[1], width))
        )
        made = add_products(use, sums, left, right)
        if count == 1:
            return made
        total = vector.insert_strided_slice(made, total, [number * lanes], [1])
    return total


def register(value: ir.Value, number: int, width: int) -> ir.Value:
    """One of the registers that a vector has."""
    kind = ir.VectorType(value.type)
    if kind.shape[0] == width:
        return value
    narrow = ir.VectorType.get([width], kind.element_type)
    return vector.extract_strided_slice(narrow, value, [number * width], [width], [1])
