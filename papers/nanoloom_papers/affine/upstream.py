"""MLIR's own vectorizer, on one loop at a time.

The pass takes every loop of a function that it thinks it can vectorize, and writes past
the end of one whose steps do not fill its vectors.  So it is given a function with a
single loop in it, whose steps do, and what it made is taken if it is that loop.
"""

from __future__ import annotations

from nanoloom.ir.mlir import func, ir, memref, named, operations, run_pipeline, vector
from nanoloom_papers.affine.build import bounds_of, step_of
from nanoloom_papers.affine.carrier import FOR, initial_values
from nanoloom_papers.affine.location import is_inside

PASS = "affine-super-vectorize{{virtual-vector-size={} vectorize-reductions={}}}"
NAME = "loop"
REASSOCIATED = "#arith.fastmath<reassoc>"


def by_upstream(loop: ir.Operation, lanes: int) -> bool:
    """Let MLIR vectorize a loop; whether it did.  The loop is gone if it did."""
    bounds = bounds_of(loop)
    if bounds is None or (bounds[1] - bounds[0]) % lanes:
        return False
    outside = given_from_outside(loop)
    module, block = alone(loop, outside)
    reduces = "true" if initial_values(loop) else "false"
    try:
        run_pipeline(module, (f"func.func({PASS.format(lanes, reduces)})",))
    except ir.MLIRError:
        return False
    made = next(op.operation for op in block.operations if op.operation.name == FOR)
    if step_of(made) != lanes or any(
        step_of(x.operation) != 1 for x in named(made, FOR)[1:]
    ):
        return False
    accesses_to_vectors(module)
    for op in named(module, "vector.reduction"):
        # By halves, or as the target does it: else one lane behind the other.
        op.operation.attributes["fastmath"] = ir.Attribute.parse(REASSOCIATED)
    for argument, value in zip(block.arguments, outside, strict=True):
        argument.replace_all_uses_with(value)
    *ops, end = [op.operation for op in block.operations]
    results = list(end.operands)
    for op in ops:
        op.move_before(loop)
    for old, new in zip(loop.results, results, strict=True):
        old.replace_all_uses_with(new)
    end.erase()
    loop.erase()
    return True


def given_from_outside(loop: ir.Operation) -> list[ir.Value]:
    """The values that a loop uses and does not make, each once."""
    used = [
        value
        for op in operations(loop, lambda _: True)
        for value in op.operation.operands
    ]
    return list(dict.fromkeys(value for value in used if not is_made_by(value, loop)))


def is_made_by(value: ir.Value, loop: ir.Operation) -> bool:
    owner = value.owner
    own = not isinstance(owner, ir.Block) and owner.operation == loop
    return own or is_inside(value, loop)


def alone(loop: ir.Operation, outside: list[ir.Value]) -> tuple[ir.Module, ir.Block]:
    """A module with a copy of the loop, and the block of its function."""
    module = ir.Module.create()
    kinds = [value.type for value in outside]
    results = [value.type for value in loop.results]
    with ir.InsertionPoint(module.body):
        function = func.FuncOp(NAME, (kinds, results))
    block = function.add_entry_block()
    values = dict(zip(outside, block.arguments, strict=True))
    with ir.InsertionPoint(block):
        copy = loop.clone()
        func.ReturnOp(list(copy.results))
    for op in operations(copy, lambda _: True):
        for place, operand in enumerate(op.operation.operands):
            op.operation.operands[place] = values.get(operand, operand)
    return module, block


def accesses_to_vectors(module: ir.Module) -> None:
    """Transfers, which may have edges, as plain loads and stores: these have none."""
    for op in named(module, "vector.transfer_read", "vector.transfer_write"):
        operands = list(op.operation.operands)
        indexing: ir.AffineMap = op.operation.attributes["permutation_map"].value  # type: ignore[attr-defined]
        with ir.InsertionPoint(op), op.operation.location:
            if op.operation.name == "vector.transfer_write":
                value, buffer, *places = operands
                vector.store(value, buffer, places)
            else:
                buffer, *places, _ = operands
                kind = op.operation.results[0].type
                (result,) = indexing.results
                if isinstance(result, ir.AffineConstantExpr):
                    made = vector.broadcast(kind, memref.load(buffer, places))
                else:
                    made = vector.load(kind, buffer, places)
                op.operation.results[0].replace_all_uses_with(made)
        op.operation.erase()
