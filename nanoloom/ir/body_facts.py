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


# Of f64 these are expanded on vectors (vector/math/table.py), the others are libm's.
OF_DOUBLES = (
    "math.exp",
    "math.expm1",
    "math.log",
    "math.log1p",
    "math.tanh",
    "math.sinh",
    "math.cosh",
    "math.asinh",
    "math.acosh",
    "math.atanh",
)


def is_call(op: Op) -> bool:
    """Whether a function has no form on vectors."""
    name = op.operation.name
    if not name.startswith("math.") or name in SIMPLE_MATH:
        return False
    kind = op.operation.results[0].type
    known = isinstance(kind, ir.F64Type) and name in OF_DOUBLES
    return not known and not isinstance(kind, ir.F32Type)
