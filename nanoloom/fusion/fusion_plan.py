"""The plan of a kernel: what its group was joined for, kept with its operations.

Where operations of two groups become one kernel, the last one of the first group is
marked.  The kernel's text has the loop of its reader there

    nanoloom.fused = "d1"       computed in a step of the reader's loop over d1

and its nest a `Fusion` of it.  A schedule is made of these: it recognizes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from nanoloom.ir.linalg_query import Op
from nanoloom.ir.loop_nest import STAGE, stages_of
from nanoloom.ir.mlir import ir
from nanoloom.nest.contraction import roles
from nanoloom.nest.fusion import fusion
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.parts import task_axes
from nanoloom.nest.plan import Fusion
from nanoloom.nest.statement import Statement

FUSED = "nanoloom.fused"  # a discardable attribute: at which loop of the reader
NOT_NAMED = ""  # before its kernel is cut: axes may become one until then


def mark(producer: Op) -> None:
    """Say that an operation is computed inside of what reads it, its only reader."""
    producer.operation.attributes[FUSED] = ir.StringAttr.get(NOT_NAMED)


def with_plan(nest: LoopNest, module: ir.Module) -> LoopNest:
    """The nest of a kernel with the fusions that it was joined for, whose loops its
    operations say from now on."""
    plan: list[Fusion] = []
    for op in stages_of(module):
        attributes = op.operation.attributes
        if FUSED in attributes:
            name: str = attributes[STAGE].value  # type: ignore[attr-defined] - MLIR's stubs know no kinds of attributes
            consumer, loop = task_loop(nest, name)
            at = attributes[FUSED].value or loop  # type: ignore[attr-defined] - MLIR's stubs know no kinds of attributes
            attributes[FUSED] = ir.StringAttr.get(at)
            plan.append(fusion(nest, name, consumer.name, at))
    return replace(nest, plan=tuple(plan))


def readers(nest: LoopNest, name: str) -> Iterator[Statement]:
    """What reads a stage, or a border around it."""
    for reader in nest.consumers(name):
        if reader.inside is None:
            yield reader
        else:
            yield from readers(nest, reader.name)


def task_loop(nest: LoopNest, name: str) -> tuple[Statement, str]:
    """What a stage is computed inside of, and the innermost loop of that which tasks
    have blocks of.

    Of a product that of its rows, as all columns read what is in front.  Several stages
    that read rows whole end in the last one.
    """
    found = {reader.name: reader for reader in readers(nest, name)}
    consumer, several = next(iter(found.values())), len(found) > 1
    shape = roles(consumer) if consumer.is_contraction else None
    if shape is not None:
        return consumer, consumer.names[(*shape.shared, *shape.rows)[-1]]
    if several and nest.last is not None:
        return nest.last, nest.last.names[max(task_axes(nest), default=-1)]
    return consumer, [axis.name for axis in consumer.axes if not axis.is_reduction][-1]
