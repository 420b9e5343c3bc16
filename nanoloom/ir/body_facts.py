"""What a statement says of its body beside how it combines."""

from __future__ import annotations

from collections.abc import Iterator

from nanoloom.ir.linalg_query import Op, body, input_count
from nanoloom.ir.mlir import ir
from nanoloom.nest.statement import SIMPLE_MATH


def added_pairs(op: Op) -> Iterator[tuple[int, int]]:
    """Operands whose one use is an addition of floats to another, with that one."""
    arguments = list(body(op).arguments)[: input_count(op)]
    for number, argument in enumerate(arguments):
        users = [use.owner.operation for use in argument.uses]
        if len(users) == 1 and users[0].name == "arith.addf":
            given = list(users[0].operands)
            for other, value in enumerate(arguments):
                if other != number and value in given:
                    yield number, other


def is_call(op: Op) -> bool:
    """Whether a function has no form on vectors: only those of f32 are expanded."""
    name = op.operation.name
    simple = not name.startswith("math.") or name in SIMPLE_MATH
    return not simple and not isinstance(op.operation.results[0].type, ir.F32Type)
