"""All lanes of a vector of any width combined, where no instruction does it.

    while more than one lane counts:
        v = even lanes of (v, 1, 1, ...) * odd lanes of it

There is no product of all lanes.  Each round leaves half as many in front of numbers
that change nothing: as many rounds as the number of lanes has bits.
"""

from __future__ import annotations

from collections.abc import Callable

from nanoloom.ir.access import as_index, index
from nanoloom.ir.mlir import arith, ir, scf, vector
from nanoloom.nest.extent import Lanes
from nanoloom.vector.widths import elements, vector_type

LEAST = 128  # bits for each unit of the width: groups of registers are halved as such

Apply = Callable[[ir.Value, ir.Value], ir.Value]


def reduce_lanes(lanes: ir.Value, neutral: ir.Value, apply: Apply) -> ir.Value:
    """One number of all lanes of a scalable vector; neutral: what changes nothing."""
    kind = ir.VectorType(lanes.type)
    element, (count,) = kind.element_type, kind.shape
    while count * element.width > LEAST and count > 2:  # type: ignore[attr-defined] - numbers have a width
        count //= 2
        half = vector_type(Lanes(count, scalable=True), element)
        low, high = (vector.scalable_extract(half, lanes, n) for n in (0, count))
        lanes = apply(low, high)
    wide = vector_type(Lanes(2 * count, scalable=True), element)
    nothing = vector.broadcast(wide, neutral)
    initial = [as_index(elements(Lanes(count, scalable=True))), lanes]
    kinds = [value.type for value in initial]
    loop = scf.WhileOp(kinds, initial)
    with ir.InsertionPoint(loop.before.blocks.append(*kinds)) as point:
        left, carried = point.block.arguments
        more = arith.cmpi(arith.CmpIPredicate.sgt, left, index(1))
        scf.ConditionOp(more, [left, carried])
    with ir.InsertionPoint(loop.after.blocks.append(*kinds)) as point:
        left, carried = point.block.arguments
        both = vector.scalable_insert(carried, nothing, 0)
        fewer = arith.shrui(arith.addi(left, index(1)), index(1))
        scf.YieldOp([fewer, apply(*vector.deinterleave(both))])
    return vector.extract(list(loop.results)[1], [], [0])
