"""Loops and branches of a kernel's code, with the values that they carry."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nanoloom.ir.access import as_index
from nanoloom.ir.mlir import ir, scf

Values = Sequence[ir.Value]
Bound = int | ir.Value
# LLVM would write several rounds behind each other.
ROLLED = "#llvm.loop_annotation<unroll = <disable = true>>"


def emit_loop(
    bounds: tuple[Bound, Bound],
    step: Bound,
    values: Values,
    inside: Callable[[ir.Value, list[ir.Value]], Values | None],
    *,
    rolled: bool = False,
) -> list[ir.Value]:
    """A loop whose body makes values of those of the round before; the last ones.

    rolled: LLVM leaves it as it is.
    """
    begin, end = map(as_index, bounds)
    loop = scf.ForOp(begin, end, as_index(step), list(values))
    if rolled:
        loop.operation.attributes["loop_annotation"] = ir.Attribute.parse(ROLLED)
    with ir.InsertionPoint(loop.body):
        scf.yield_(inside(loop.induction_variable, list(loop.inner_iter_args)) or [])
    return list(loop.results)


def emit_while(
    values: Values,
    more: Callable[[list[ir.Value]], ir.Value],
    inside: Callable[[list[ir.Value]], Values],
) -> list[ir.Value]:
    """The same where values say whether there is one more round."""
    kinds = [value.type for value in values]
    loop = scf.WhileOp(kinds, list(values))
    with ir.InsertionPoint(loop.before.blocks.append(*kinds)) as point:
        carried = list(point.block.arguments)
        scf.ConditionOp(more(carried), carried)
    with ir.InsertionPoint(loop.after.blocks.append(*kinds)) as point:
        scf.YieldOp(inside(list(point.block.arguments)))
    return list(loop.results)


def emit_branch(
    condition: ir.Value,
    then: Callable[[], Values | None],
    otherwise: Callable[[], Values | None] | None = None,
    kinds: Sequence[ir.Type] = (),
) -> list[ir.Value]:
    """What one of two gives, as only a run knows."""
    branch = scf.IfOp(condition, list(kinds), has_else=otherwise is not None)
    ways = zip(branch.regions, (then, otherwise), strict=True)
    for region, emit in ways:
        if emit is not None:
            with ir.InsertionPoint(region.blocks[0]):
                scf.yield_(emit() or [])
    return list(branch.results)
