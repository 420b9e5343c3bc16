"""Sums of products: fused multiply-adds taken apart, and put together again.

    %s = math.fma %a, %b, %c    <->    %p = arith.mulf %a, %b; %s = arith.addf %p, %c

Taken apart, a sum is what MLIR's vectorizer knows as one; put together it is rounded
once.
"""

from __future__ import annotations

from nanoloom.ir.mlir import ir, named
from nanoloom_papers.affine.carrier import FOR, LOAD, STORE
from nanoloom_papers.affine.step import FMA

ADD, MULTIPLY = "arith.addf", "arith.mulf"
LOADS = (LOAD, "affine.vector_load", "vector.load")
STORES = (STORE, "affine.vector_store", "vector.store")
FUSED = (32, 64)  # bits of the floats that instructions multiply and add


def take_apart(module: ir.Module | ir.Operation) -> None:
    """Every fused multiply-add of a sum so far as a product and a sum.

    Others stay: they are to be rounded once, and nothing depends on them.
    """
    for op in named(module, *FMA):
        left, right, addend = op.operation.operands
        if not is_sum_so_far(op.operation, addend):
            continue
        kind = op.operation.results[0].type
        with ir.InsertionPoint(op), op.operation.location:
            product = ir.Operation.create(MULTIPLY, [kind], [left, right])
            total = ir.Operation.create(ADD, [kind], [product.results[0], addend])
        op.operation.results[0].replace_all_uses_with(total.results[0])
        op.operation.erase()


def put_together(module: ir.Module | ir.Operation) -> None:
    """Every sum of what a loop carries, or loads, and a product of its own."""
    for op in named(module, ADD):
        product, addend = parts_of(op.operation)
        if product is None or addend is None:
            continue
        kind = op.operation.results[0].type
        with ir.InsertionPoint(op), op.operation.location:
            fused = ir.Operation.create("math.fma", [kind], [*product.operands, addend])
        op.operation.results[0].replace_all_uses_with(fused.results[0])
        op.operation.erase()
        product.erase()


def parts_of(op: ir.Operation) -> tuple[ir.Operation | None, ir.Value | None]:
    """The product and the addend of a sum that can be one operation."""
    element = op.results[0].type
    if isinstance(element, ir.VectorType):
        element = element.element_type
    if not isinstance(element, ir.FloatType) or element.width not in FUSED:
        return None, None
    for place, value in enumerate(op.operands):
        product, addend = value.owner, op.operands[1 - place]
        if isinstance(product, ir.Block) or product.operation.name != MULTIPLY:
            continue
        alone = len(list(value.uses)) == 1 and product.operation.block == op.block
        if alone and is_sum_so_far(op, addend):
            return product.operation, addend
    return None, None


def is_sum_so_far(op: ir.Operation, addend: ir.Value) -> bool:
    """Whether a sum adds to what a loop carries, or to the element that it replaces.

    With other sums of products in between: several steps of a loop.
    """
    owner = first_of(addend).owner
    if isinstance(owner, ir.Block):
        return owner.owner.operation.name == FOR
    last = last_of(op)
    users = [use.owner.operation for use in last.results[0].uses]
    if owner.operation.name not in LOADS or len(users) != 1:
        return False
    stored = users[0].name in STORES and users[0].operands[1] == owner.operands[0]
    return stored and users[0].operands[0] == last.results[0]


def first_of(addend: ir.Value) -> ir.Value:
    """What multiply-adds behind each other begin with."""
    owner = addend.owner
    while not isinstance(owner, ir.Block) and owner.operation.name in FMA:
        addend = owner.operation.operands[2]
        owner = addend.owner
    return addend


def last_of(op: ir.Operation) -> ir.Operation:
    """The last of sums, each of which is all that the one before is for."""
    users = [use.owner.operation for use in op.results[0].uses]
    while len(users) == 1 and users[0].name in (ADD, *FMA):
        op = users[0]
        users = [use.owner.operation for use in op.results[0].uses]
    return op
