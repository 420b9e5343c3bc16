"""Expressions as bodies of linalg operations: a row of BODIES for each word."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from nanoloom.ir.mlir import math
from nanoloom.linalg.builder.generic import computed_as
from nanoloom.linalg.builder.indexing import INT64, position
from nanoloom.linalg.builder.scalar import Scalar, constant, select
from nanoloom.notation.expression import (
    Apply,
    Constant,
    Element,
    Expression,
    Position,
)
from nanoloom.notation.index import Axis, Index

Values: TypeAlias = Callable[[Element], Scalar]


def function(name: str) -> Callable[[Scalar], Scalar]:
    """A float function of the math dialect."""
    return lambda x: x.math(name)


BODIES: dict[str, Callable[..., Scalar]] = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y,
    "and": lambda x, y: x & y,
    "or": lambda x, y: x | y,
    "xor": lambda x, y: x ^ y,
    "shift_left": lambda x, y: x << y,
    "shift_right": lambda x, y: x >> y,
    "maximum": lambda x, y: x.maximum(y),
    "minimum": lambda x, y: x.minimum(y),
    "power": lambda x, y: x.math("powf", y),
    "less": lambda x, y: x < y,
    "less_equal": lambda x, y: x <= y,
    "greater": lambda x, y: x > y,
    "greater_equal": lambda x, y: x >= y,
    "equal": lambda x, y: x.equal(y),
    "differs": lambda x, y: x.differs(y),
    "negative": lambda x: -x,
    "invert": lambda x: ~x,
    "absolute": lambda x: x.absolute(),
    "popcount": lambda x: Scalar(math.ctpop(x.value), x.dtype),
    "round": function("roundeven"),
    "exp": function("exp"),
    "log": function("log"),
    "sqrt": function("sqrt"),
    "rsqrt": function("rsqrt"),
    "sin": function("sin"),
    "cos": function("cos"),
    "tanh": function("tanh"),
    "erf": function("erf"),
    "floor": function("floor"),
    "ceil": function("ceil"),
}


def place_of(index: Index, places: Mapping[Axis, int]) -> Scalar:
    """The value of an index, an int64."""
    total = constant(index.offset, INT64)
    for axis, factor in index.terms:
        total = total + position(places[axis]) * factor
    return total


def value_of(x: Expression, values: Values, places: Mapping[Axis, int]) -> Scalar:
    """An expression at the insertion point, within a body.

    values: of the elements that it reads; places: the dimension of each axis.
    """
    match x:
        case Element():
            return values(x)
        case Constant():
            return constant(x.number, computed_as(x.dtype))
        case Position():
            return place_of(x.index, places)
        case Apply():
            given = [value_of(operand, values, places) for operand in x.given]
            if x.word == "select":
                return select(given[0], given[1], given[2])
            if x.word == "cast":
                return given[0].cast(computed_as(x.dtype))
            return BODIES[x.word](*given)
        case _:
            raise AssertionError(x)
