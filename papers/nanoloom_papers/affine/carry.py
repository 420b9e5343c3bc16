"""Reductions in memory become values that their loop carries.

for k:                            first = load C[i, j]
  c = load C[i, j]                sum = for k (c = first):
  s = c + ...                       s = c + ...
  store s, C[i, j]        ->        yield s
                                  store sum, C[i, j]
"""

from __future__ import annotations

from nanoloom.ir.mlir import ir
from nanoloom_papers.affine.build import (
    body_of,
    loop_like,
    steps_of,
    yield_values,
    yielded,
)
from nanoloom_papers.affine.carrier import Carrier, initial_values
from nanoloom_papers.affine.detect import reductions
from nanoloom_papers.affine.location import is_inside


def carry(loop: ir.Operation) -> ir.Operation:
    """The loop with its reductions in memory carried; the same if it has none.

    Those stored in a loop further in are left: they are other elements in each step.
    """
    wanted = [
        each.carrier for each in reductions(loop) if is_movable(each.carrier, loop)
    ]
    if not wanted:
        return loop
    with ir.InsertionPoint(loop), loop.location:
        first = [load_of(carrier).clone() for carrier in wanted]
        initial = [*initial_values(loop), *(op.results[0] for op in first)]
        made, block = loop_like(loop, initial)
    move(loop, block, wanted)
    for old, new in zip(loop.results, made.results, strict=False):
        old.replace_all_uses_with(new)
    results = list(made.results)[len(list(loop.results)) :]
    for carrier, result in zip(wanted, results, strict=True):
        carrier.end.operands[0] = result
        carrier.end.move_after(made)
    loop.erase()
    return made


def move(loop: ir.Operation, block: ir.Block, wanted: list[Carrier]) -> None:
    """The body of a loop to its new one, the loads' values as what is carried."""
    old = body_of(loop)
    values = [*yielded(old), *(carrier.end.operands[0] for carrier in wanted)]
    arguments = list(block.arguments)
    before = len(list(old.arguments))
    for argument, new in zip(old.arguments, arguments, strict=False):
        argument.replace_all_uses_with(new)
    yield_values(block, values)
    *_, end = block.operations
    for op in steps_of(old):
        op.move_before(end.operation)
    for carrier, new in zip(wanted, arguments[before:], strict=True):
        load = load_of(carrier)
        load.results[0].replace_all_uses_with(new)
        load.erase()


def is_movable(carrier: Carrier, loop: ir.Operation) -> bool:
    """Whether a carrier is an element whose load and store may leave the loop."""
    if carrier.location is None or carrier.end.block != body_of(loop):
        return False
    places = [*load_of(carrier).operands, *list(carrier.end.operands)[1:]]
    return not any(is_inside(value, loop) for value in places)


def load_of(carrier: Carrier) -> ir.Operation:
    owner = carrier.start.owner
    assert not isinstance(owner, ir.Block)
    return owner.operation
