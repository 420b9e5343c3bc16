"""The least and the largest number that an index can be, as far as that is known.

for i in 0..28 by 14: i + 13   ->   13, 27
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product

from nanoloom.ir.access import constant_of
from nanoloom.ir.mlir import ir

Pair = tuple[int, int]
CORNERS: Mapping[str, Callable[[int, int], int]] = {
    "arith.addi": lambda one, other: one + other,
    "arith.muli": lambda one, other: one * other,
    "arith.maxsi": max,
    "arith.minsi": min,
}


def bounds(value: ir.Value) -> Pair | None:
    """Both of an index, None for what is known only as it runs."""
    known, owner = constant_of(value), value.owner
    if known is not None:
        return known, known
    if isinstance(owner, ir.Block):
        return of_loop(value, owner)
    corner = CORNERS.get(owner.name)
    if corner is None:
        return None
    pairs = [pair for x in owner.operands if (pair := bounds(x)) is not None]
    if len(pairs) != len(list(owner.operands)):
        return None
    found = [corner(*ends) for ends in product(*pairs)]
    return min(found), max(found)


def of_loop(place: ir.Value, block: ir.Block) -> Pair | None:
    """Of a loop's variable."""
    loop = block.owner
    if loop.name != "scf.for" or place != block.arguments[0]:
        return None
    begin, end, step = (constant_of(x) for x in list(loop.operands)[:3])
    if begin is None or end is None or not step or end <= begin:
        return None
    return begin, begin + (end - 1 - begin) // step * step
