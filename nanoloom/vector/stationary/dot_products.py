"""Sums along vectors of bytes: one instruction multiplies and adds four neighbours.

    for c in fours: sums[c / 4] += image[c..] . weights[c..]

A vector of sums has a quarter of the lanes, as many bytes as the operands.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from nanoloom.errors import Error
from nanoloom.kernels.linalg_query import (
    Op,
    body,
    iterators,
    multiplied,
    widened,
    yielded,
)
from nanoloom.kernels.nest import element
from nanoloom.mlir import arith, ir, vector
from nanoloom.target.facts import Target
from nanoloom.target.instructions.choose import DotUse, bytes_dot
from nanoloom.vector.nanokernel.instructions import emit
from nanoloom.vector.vector_plan import VectorPlan

GROUP, BITS = 4, 8  # bytes that fill a lane of 32 bits


def dot_along(op: Op, plan: VectorPlan, target: Target) -> DotUse | None:
    """The instruction of a stage whose vectors, full registers of bytes, lie along its
    sum; None where none is said."""
    if not plan.instruction or iterators(op)[plan.axis] != "reduction":
        return None
    lanes, use = plan.lanes, bytes_dot(target, element(op, 0), element(op, 1))
    whole = not lanes.scalable and lanes.count % target.lanes(BITS) == 0
    fits = plan.stays is not None and whole and adds_products(op)
    if not fits or use is None or use.dot.name != plan.instruction:
        refuse_instruction(plan.instruction)
    return use


def refuse_instruction(name: str) -> NoReturn:
    raise Error(
        f"no {name} of this CPU adds the products of this stage as its operands lie",
        hint="leave the instruction out, or pack and unroll what it multiplies",
    )


def adds_products(op: Op) -> bool:
    """Whether a body is sum + a * b in i32 or f32, of both its operands."""
    arguments, total = list(body(op).arguments), yielded(op)[0].owner
    if len(arguments) != 3 or isinstance(total, ir.Block):
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

    given: vectors of bytes.  mask: which of them count, None for all.
    """
    one, other = reversed(given) if use.swapped else given
    if mask is not None:  # of products with 0 nothing is left
        kind = ir.VectorType(one.type)
        zeros = vector.broadcast(kind, arith.constant(kind.element_type, 0))
        one = arith.select(mask, one, zeros)
    width = use.dot.bits // BITS
    kind, count = ir.VectorType(total.type), ir.VectorType(one.type).shape[0] // width
    narrow = ir.VectorType.get([width // GROUP], kind.element_type)
    for number in range(count):
        operands = (
            register(x, number, size)
            for x, size in ((total, width // GROUP), (one, width), (other, width))
        )
        made = emit(use.dot.function, narrow, list(operands))
        if count == 1:
            return made
        at = [number * (width // GROUP)]
        total = vector.insert_strided_slice(made, total, at, [1])
    return total


def register(value: ir.Value, number: int, width: int) -> ir.Value:
    """One of the registers that a vector has."""
    kind = ir.VectorType(value.type)
    if kind.shape[0] == width:
        return value
    narrow = ir.VectorType.get([width], kind.element_type)
    return vector.extract_strided_slice(narrow, value, [number * width], [width], [1])
