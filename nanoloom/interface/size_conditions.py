"""What the sizes of a model's inputs must fulfil, as the model itself says.

torch.export follows one branch where a module asks for a size: the graph is right only
where the same is so (frontend/torch/size_conditions.py).
"""

from __future__ import annotations

import ast
import json
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from nanoloom.errors import InputError, ModelError

KEY = "nanoloom.size_conditions"  # of a model's metadata
MOST_POWER = 4
Axis = tuple[str, int, int, int]  # input, axis, and of how many times what and more

OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Div: operator.truediv,
    ast.USub: operator.neg, ast.Not: operator.not_,
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt,
    ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "max": max, "min": min, "trunc": math.trunc, "floor": math.floor,
    "ceil": math.ceil, "float": float, "sym_float": float, "sym_max": max,
    "sym_min": min,
}  # fmt: skip


class NotKnown(Exception):
    """A text that is no condition, or none of numbers."""


@dataclass(frozen=True)
class SizeConditions:
    """axes: where the names of conditions are found.

    conditions: each in Python, and as a user reads it.
    """

    axes: Mapping[str, Axis]
    conditions: Sequence[tuple[str, str]]

    @classmethod
    def read(cls, text: str) -> SizeConditions:
        axes, conditions = json.loads(text) if text else ({}, [])
        rows = {
            name: (str(x), int(i), int(a), int(b))
            for name, (x, i, a, b) in axes.items()
        }
        return cls(rows, [(str(said), str(told)) for said, told in conditions])

    def written(self) -> str:
        return json.dumps([self.axes, self.conditions])

    @cached_property
    def parsed(self) -> list[tuple[ast.expr, str]]:
        return [(parse(said), told) for said, told in self.conditions]

    def require(self, shapes: Mapping[str, Sequence[int]]) -> None:
        """Raise InputError for shapes of inputs for which the model is not right."""
        numbers: dict[str, int] = {}
        for name, (x, axis, times, more) in self.axes.items():
            numbers[name], rest = divmod(shapes[x][axis] - more, times)
            if rest:
                raise refused(f"{x}.shape[{axis}] % {times} == {more % times}")
        for condition, told in self.parsed:
            try:
                right = value(condition, numbers)
            except ZeroDivisionError:
                right = False
            if not right:
                raise refused(told)


def refused(condition: str) -> InputError:
    return InputError(
        f"have sizes for which {condition} is not so: torch.export took it for"
        " granted, as a Dim's bounds say or as it was of the example",
        where="inputs of the model",
        hint="export it with other bounds or for these sizes, or write the module"
        " without it",
    )


NO_CONDITIONS = SizeConditions({}, ())


def require_conditions(text: str, ranks: Mapping[str, int]) -> None:
    """Raise ModelError for what a model says that is not of its own inputs, or that
    nobody can ask.  ranks: of the inputs by name."""
    try:
        given = SizeConditions.read(text)
        for name, axis, times, _ in given.axes.values():
            if not 0 <= axis < ranks[name] or times < 1:
                raise ValueError
        numbers = dict.fromkeys(given.axes, 2)
        for condition, _ in given.parsed:
            with suppress(ZeroDivisionError, OverflowError):  # others may be right
                value(condition, numbers)
    except (ValueError, TypeError, KeyError, AttributeError, NotKnown) as error:
        raise ModelError(
            f"does not say what its inputs' sizes must fulfil: {text[:80]}",
            where=f"metadata entry {KEY}",
            hint="remove the entry, or import the program of PyTorch again",
        ) from error


def parse(text: str) -> ast.expr:
    """Raises NotKnown."""
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise NotKnown(text[:80]) from error


def value(node: ast.expr, given: Mapping[str, Any]) -> Any:
    """Of an expression.  given: names' numbers, or what stands for them.

    Raises NotKnown for what is no arithmetic.
    """
    match node:
        case ast.Constant(value=int() | float()):
            return node.value
        case ast.Name() if node.id in given:
            return given[node.id]
        case ast.UnaryOp() if type(node.op) in OPERATORS:
            return OPERATORS[type(node.op)](value(node.operand, given))
        case ast.BinOp(op=ast.Pow(), right=ast.Constant(value=int())):
            return power(value(node.left, given), node.right.value)  # type: ignore[attr-defined] - matched
        case ast.BinOp() if type(node.op) in OPERATORS:
            sides = value(node.left, given), value(node.right, given)
            return OPERATORS[type(node.op)](*sides)
        case ast.Compare(ops=[op], comparators=[right]) if type(op) in OPERATORS:
            return OPERATORS[type(op)](value(node.left, given), value(right, given))
        case ast.BoolOp():
            made = [value(x, given) for x in node.values]
            return all(made) if isinstance(node.op, ast.And) else any(made)
        case ast.Call(keywords=[]) if (name := function(node.func)) in FUNCTIONS:
            return FUNCTIONS[name](*[value(x, given) for x in node.args])
        case _:
            raise NotKnown(ast.unparse(node)[:80])


def power(base: Any, times: Any) -> Any:
    if not 0 < times <= MOST_POWER:
        raise NotKnown(f"a power of {times}")
    return math.prod([base] * times)


def function(node: ast.expr) -> str:
    """The last part of a name: max, math.trunc."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
