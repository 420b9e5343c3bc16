"""Tiles of rows whose number is not known before, as alike as can be (`Balance`).

    for i in 0 to n by 8: rows = min(8, n - i)          of 9 rows 8, 1
    for i in 0 to n by 8: begin, rows = even steps      5, 4

A last tile of a row or two takes nearly as long as one of four: it waits for its sums,
and for the panel, which it reads as the others do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from nanoloom.ir.access import add, constant_of, index, multiply
from nanoloom.ir.linalg_query import Op
from nanoloom.ir.mlir import affine, arith, ir, made_by, scf
from nanoloom.vector.nanokernel.tile.operand_reuse import tile_loops

BEGIN = "nanoloom.begin"  # of the number of rows in front of a tile


@dataclass(frozen=True)
class Span:
    """A loop's variable `place` that goes from 0 to an end by a step, in its body."""

    loop: ir.Operation
    body: ir.Block
    place: ir.Value
    end: ir.Value
    step: int


def balance_tiles(op: Op, rows: int) -> bool:
    """Let a tile's loop go in even steps, if it goes by so many rows to any number.

    Whether there is such a loop.
    """
    found = False
    for loop in tile_loops(op, open_ends=True):
        _, end, step = list(loop.operation.operands)[:3]
        if constant_of(end) is None and constant_of(step) == rows:
            here = Span(loop.operation, loop.body, loop.induction_variable, end, rows)
            counts = list(counts_of(here))
            if counts:
                in_balanced_steps(here, counts)
                found = True
    return found


def counts_of(span: Span) -> Iterator[ir.Operation]:
    """The numbers of rows of a loop's tiles: min(end - row, step)."""
    wanted = {**composed(span.end), span.place: -1}
    for use in span.place.uses:
        op = use.owner.operation
        if op.name != "affine.min":
            continue
        results = list(ir.AffineMapAttr(op.attributes["map"]).value.results)
        limits = [x.value for x in results if isinstance(x, ir.AffineConstantExpr)]
        left = [x for x in results if not isinstance(x, ir.AffineConstantExpr)]
        if limits == [span.step] and [of_values(x, op) for x in left] == [wanted]:
            yield op


Factors = dict[ir.Value | None, int]  # of values; None: of 1, what is added


def composed(value: ir.Value) -> Factors:
    """A number as the sum that an `affine.apply` makes of others, or itself."""
    owner = made_by(value, "affine.apply")
    if owner is None:
        return {value: 1}
    (expr,) = ir.AffineMapAttr(owner.attributes["map"]).value.results
    return of_values(expr, owner) or {value: 1}


def of_values(expr: ir.AffineExpr, op: ir.Operation) -> Factors:
    """A linear expression of an operation's operands; {} for another one."""
    dims = ir.AffineMapAttr(op.attributes["map"]).value.n_dims
    operands = list(op.operands)
    match expr:
        case ir.AffineDimExpr():
            return {operands[expr.position]: 1}
        case ir.AffineSymbolExpr():
            return {operands[dims + expr.position]: 1}
        case ir.AffineConstantExpr():
            return {None: expr.value}
        case ir.AffineAddExpr():
            left, right = of_values(expr.lhs, op), of_values(expr.rhs, op)
            if not left or not right:
                return {}
            keys = {**left, **right}
            return {x: left.get(x, 0) + right.get(x, 0) for x in keys}
        case ir.AffineMulExpr() if isinstance(expr.rhs, ir.AffineConstantExpr):
            factor = expr.rhs.value
            return {x: factor * n for x, n in of_values(expr.lhs, op).items()}
        case _:
            return {}


def in_balanced_steps(span: Span, counts: list[ir.Operation], unit: int = 1) -> None:
    """The first tiles have a row more than the others, where it does not come out.

    unit: so many rows stay together, but the last ones; it divides the step.
    """
    size = index
    with ir.InsertionPoint(span.loop), span.loop.location:
        tiles = arith.maxui(arith.ceildivui(span.end, size(span.step)), size(1))
        units = span.end if unit == 1 else arith.ceildivui(span.end, size(unit))
        least, more = arith.divui(units, tiles), arith.remui(units, tiles)
    with ir.InsertionPoint.at_block_begin(span.body), span.loop.location:
        place = arith.divui(span.place, size(span.step))
        before = add(multiply(place, least), arith.minui(place, more))
        begin = multiply(before, size(unit))
        larger = arith.cmpi(arith.CmpIPredicate.ult, place, more)
        here = multiply(arith.select(larger, add(least, size(1)), least), size(unit))
        # What temporaries take is read off a minimum.
        rows, limit = ir.AffineSymbolExpr.get(0), ir.AffineConstantExpr.get(span.step)
        limits = [rows, limit]
        operands = [here]
        if unit > 1:
            limits.append(ir.AffineSymbolExpr.get(1))
            operands.append(arith.subi(span.end, begin))
        minimum = ir.AffineMap.get(0, len(operands), limits)
        count = affine.AffineMinOp(minimum, operands).result
    begin.owner.operation.attributes[BEGIN] = ir.UnitAttr.get()
    for each in counts:  # left behind: a script may hold them
        each.results[0].replace_all_uses_with(count)
    kept = [place.owner.operation, *counts]
    span.place.replace_all_uses_except(begin, kept)


def first_row(loop: scf.ForOp) -> ir.Value:
    """The row that a loop's tile begins with."""
    for op in loop.body.operations:
        if BEGIN in op.operation.attributes:
            return op.operation.results[0]
    return loop.induction_variable
