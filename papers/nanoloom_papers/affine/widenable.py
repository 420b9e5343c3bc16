"""Which loops can be lanes of vectors: by what stands in them, and how it reads."""

from __future__ import annotations

from nanoloom.ir.mlir import ir, operations
from nanoloom_papers.affine.build import body_of, index_of_loop
from nanoloom_papers.affine.carrier import FOR, LOAD, STORE
from nanoloom_papers.affine.location import (
    Location,
    is_index_within,
    is_inside,
    location_of,
)
from nanoloom_papers.affine.report import is_strided

IN_LANES = ("arith", "math")  # dialects whose operations take vectors
ADDRESSES = (LOAD, STORE, "affine.apply")
LEAST_BITS = 8  # of an element in memory: smaller ones lie packed in vectors


def is_widenable(loop: ir.Operation) -> bool:
    """Whether all that stands in a loop has a form on vectors.

    What moves with the loop is read and written one element behind the other.
    """
    varying = {index_of_loop(loop)}
    inside = [op.operation for op in operations(loop, lambda _: True)][1:]
    for op in inside:
        if op.name == FOR:
            varying |= set(list(body_of(op).arguments)[1:]) | set(op.results)
        if not is_allowed(op, loop, varying):
            return False
    return True


def is_allowed(op: ir.Operation, loop: ir.Operation, varying: set[ir.Value]) -> bool:
    """Whether an operation has a form on vectors; adds what varies to `varying`."""
    depends = any(value in varying for value in op.operands)
    if op.name in (LOAD, STORE):
        location = location_of(op.opview)
        if not stands(location, loop):
            return False
        if not moves(location, loop):
            return op.name == LOAD
        varying |= set(op.results)
        return is_behind_each_other(location, loop)
    if op.name == "affine.apply":
        return not depends or all(is_address(use) for use in op.results[0].uses)
    if op.name == FOR:
        heads = list(op.operands)[: sum(list(op.attributes["operandSegmentSizes"])[:2])]  # type: ignore[call-overload]
        return not any(is_inside(value, loop) for value in heads)
    if op.name == "affine.yield":
        return True
    if not depends:
        return op.name.split(".")[0] in IN_LANES or op.name == "memref.load"
    varying |= set(op.results)
    simple = all(is_number(value.type) for value in (*op.results, *op.operands))
    return simple and op.name.split(".")[0] in IN_LANES


def is_address(use: ir.OpOperand) -> bool:
    """Whether a value is used as a place only, not as a number."""
    user = use.owner.operation
    return user.name in ADDRESSES and not (
        user.name == STORE and not use.operand_number
    )


def is_number(kind: ir.Type) -> bool:
    return isinstance(kind, ir.FloatType | ir.IntegerType | ir.IndexType)


def moves(location: Location, loop: ir.Operation) -> bool:
    """Whether a place is another one in each step."""
    return index_of_loop(loop) in location.values


def stands(location: Location, loop: ir.Operation) -> bool:
    """Whether a place is made of indices of loops, and of what is made outside."""
    counter = index_of_loop(loop)
    return not is_inside(location.buffer, loop) and all(
        value == counter or not is_inside(value, loop) or is_index_within(value, loop)
        for value in location.values
    )


def is_behind_each_other(location: Location, loop: ir.Operation) -> bool:
    """Whether a loop's steps go through a buffer's elements in their order."""
    kind = ir.MemRefType(location.buffer.type)
    element = kind.element_type
    if not isinstance(element, ir.FloatType | ir.IntegerType):
        return False
    if element.width < LEAST_BITS or not is_strided(kind):
        return False
    counter = index_of_loop(loop)
    *outer, last = location.indices
    if any(counter in index.values for index in outer):
        return False
    dense = kind.get_strides_and_offset()[0][-1] == 1
    return dense and last.factor(counter) == 1
