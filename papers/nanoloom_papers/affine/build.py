"""Loops of the affine dialect as they are made: a head, a body, what they carry."""

from __future__ import annotations

from collections.abc import Sequence

from nanoloom.ir.mlir import ir
from nanoloom_papers.affine.carrier import FOR, initial_values

BOUNDS = ("lowerBoundMap", "upperBoundMap")
STEP = "step"


def loop_like(
    old: ir.Operation,
    initial: Sequence[ir.Value],
    bounds: tuple[int, int] | None = None,
    step: int | None = None,
) -> tuple[ir.Operation, ir.Block]:
    """A loop with the bounds of another, or with these, and an empty body.

    Made at the current insertion point.  initial: what it carries, to begin with.
    """
    kept = len(list(old.operands)) - len(initial_values(old))
    heads = list(old.operands)[:kept] if bounds is None else []
    words = {name: old.attributes[name] for name in (*BOUNDS, STEP)}
    if bounds is not None:
        words |= dict(zip(BOUNDS, map(number_map, bounds), strict=True))
    if step is not None:
        words[STEP] = ir.IntegerAttr.get(ir.IndexType.get(), step)
    sizes = list(old.attributes["operandSegmentSizes"])[:2] if heads else [0, 0]  # type: ignore[call-overload]
    words["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([*sizes, len(initial)])
    kinds = [value.type for value in initial]
    made = ir.Operation.create(FOR, kinds, [*heads, *initial], words, regions=1)
    places = [old.location] * (len(kinds) + 1)
    block = made.regions[0].blocks.append(ir.IndexType.get(), *kinds, arg_locs=places)
    return made, block


def number_map(number: int) -> ir.AffineMapAttr:
    return ir.AffineMapAttr.get(ir.AffineMap.get_constant(number))


def number_of(indexing: ir.Attribute) -> int | None:
    """The number that a bound is, if it is one."""
    results = list(indexing.value.results)  # type: ignore[attr-defined]
    known = len(results) == 1 and isinstance(results[0], ir.AffineConstantExpr)
    return results[0].value if known else None


def bounds_of(loop: ir.Operation) -> tuple[int, int] | None:
    """Where a loop of step 1 begins and ends, if both are numbers."""
    low, high = (number_of(loop.attributes[name]) for name in BOUNDS)
    if low is None or high is None or step_of(loop) != 1:
        return None
    return low, max(low, high)


def step_of(loop: ir.Operation) -> int:
    return int(loop.attributes[STEP].value)  # type: ignore[attr-defined]


def begin_at(loop: ir.Operation, number: int) -> None:
    """Let a loop begin later: what is in front of it has done the steps before."""
    loop.attributes[BOUNDS[0]] = number_map(number)


def split(loop: ir.Operation, end: int) -> ir.Operation:
    """A loop's steps up to `end` as one of their own in front of it; gives that.

    What it carries goes from the one to the other.
    """
    with ir.InsertionPoint(loop):
        first = loop.clone()
    first.attributes[BOUNDS[1]] = number_map(end)
    begin_at(loop, end)
    before = len(list(loop.operands)) - len(list(loop.results))
    for place, value in enumerate(first.results):
        loop.operands[before + place] = value
    return first


def drop_if_done(loop: ir.Operation) -> None:
    """Erase a loop without steps: its results are what it begins with."""
    bounds = bounds_of(loop)
    if bounds is None or bounds[0] < bounds[1]:
        return
    for old, new in zip(loop.results, initial_values(loop), strict=True):
        old.replace_all_uses_with(new)
    loop.erase()


def yield_values(block: ir.Block, values: Sequence[ir.Value]) -> None:
    """End the body of a loop."""
    with ir.InsertionPoint(block):
        ir.Operation.create("affine.yield", [], list(values))


def body_of(loop: ir.Operation) -> ir.Block:
    return loop.regions[0].blocks[0]


def index_of_loop(loop: ir.Operation) -> ir.Value:
    return body_of(loop).arguments[0]


def steps_of(block: ir.Block) -> list[ir.Operation]:
    """What a body does, without its end."""
    return [op.operation for op in block.operations][:-1]


def yielded(block: ir.Block) -> list[ir.Value]:
    *_, last = block.operations
    return list(last.operation.operands)


def shifted(value: ir.Value, by: int) -> ir.Value:
    """An index so many further."""
    if not by:
        return value
    indexing = ir.AffineMap.get(1, 0, [ir.AffineDimExpr.get(0) + by])
    words = {"map": ir.AffineMapAttr.get(indexing)}
    made = ir.Operation.create("affine.apply", [value.type], [value], words)
    return made.results[0]


def copied(op: ir.Operation, values: dict[ir.Value, ir.Value]) -> ir.Operation:
    """A copy of an operation without regions, of other operands; kept in `values`."""
    made = op.clone()
    for place, operand in enumerate(op.operands):
        made.operands[place] = values.get(operand, operand)
    for old, new in zip(op.results, made.results, strict=True):
        values[old] = new
    return made
