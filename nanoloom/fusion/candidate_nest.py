"""The nest that operations would have in one kernel, before they are in any."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nanoloom.ir.linalg_query import Op, base
from nanoloom.ir.loop_nest import stage_of
from nanoloom.ir.mlir import ir
from nanoloom.nest.nest import Buffer, LoopNest, Role


def nest_of(
    ops: Sequence[Op], weights: Sequence[ir.Value], same: Mapping[ir.Value, ir.Value]
) -> LoopNest:
    """Operations that are in no kernel yet as a nest, whose last one makes its result.

    weights: values that are parameters.  same: values that are read as if they were
    others: without the border around these.
    """
    made = {op.operation.results[0]: f"stage{n}" for n, op in enumerate(ops)}
    result = ops[-1].operation.results[0]
    buffers: dict[ir.Value, Buffer] = {}

    def buffer(value: ir.Value) -> str:
        value = same.get(value, value)
        if value not in buffers:
            buffers[value] = described(value)
        return buffers[value].name

    def described(value: ir.Value) -> Buffer:
        name = made.get(value, f"value{len(buffers)}")
        if not isinstance(value.type, ir.RankedTensorType):
            return Buffer(name, (), str(value.type), Role.SCALAR)
        role = Role.CONSTANT if base(value) in weights else Role.INPUT
        if value in made:
            role = Role.RESULT if value == result else Role.TEMPORARY
        kind = ir.RankedTensorType(value.type)
        return Buffer(name, tuple(kind.shape), str(kind.element_type), role)

    stages = tuple(stage_of(op, f"stage{n}", buffer) for n, op in enumerate(ops))
    return LoopNest(tuple(buffers.values()), stages, (buffer(result),))
