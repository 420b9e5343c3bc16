"""Expressions over elements of buffers: values that know their element type.

Numbers take the type of what they stand beside; every other change of type is a `cast`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn, TypeAlias

import numpy as np

from nanoloom.errors import Error
from nanoloom.notation.functions_table import (
    BOOL,
    WORDS,
    element_type,
    is_exact,
    kind_of,
)
from nanoloom.notation.index import Axis, Index, index_of
from nanoloom.notation.unknown import Unknown

if TYPE_CHECKING:
    from nanoloom.notation.buffer import Buffer

Given: TypeAlias = "Expression | int | float | bool"


@dataclass(frozen=True, eq=False)
class Expression(Unknown):
    """A value at one point of the loops.  dtype: its element type."""

    dtype: np.dtype

    @property
    def operands(self) -> tuple[Expression, ...]:
        return ()

    def __add__(self, other: Given) -> Expression:
        return apply("add", self, other)

    def __radd__(self, other: Given) -> Expression:
        return apply("add", other, self)

    def __sub__(self, other: Given) -> Expression:
        return apply("subtract", self, other)

    def __rsub__(self, other: Given) -> Expression:
        return apply("subtract", other, self)

    def __mul__(self, other: Given) -> Expression:
        return apply("multiply", self, other)

    def __rmul__(self, other: Given) -> Expression:
        return apply("multiply", other, self)

    def __truediv__(self, other: Given) -> Expression:
        return apply("divide", self, other)

    def __rtruediv__(self, other: Given) -> Expression:
        return apply("divide", other, self)

    def __and__(self, other: Given) -> Expression:
        return apply("and", self, other)

    def __rand__(self, other: Given) -> Expression:
        return apply("and", other, self)

    def __or__(self, other: Given) -> Expression:
        return apply("or", self, other)

    def __ror__(self, other: Given) -> Expression:
        return apply("or", other, self)

    def __xor__(self, other: Given) -> Expression:
        return apply("xor", self, other)

    def __rxor__(self, other: Given) -> Expression:
        return apply("xor", other, self)

    def __lshift__(self, other: int) -> Expression:
        return shifted("shift_left", self, other)

    def __rshift__(self, other: int) -> Expression:
        return shifted("shift_right", self, other)

    def __lt__(self, other: Given) -> Expression:
        return apply("less", self, other)

    def __le__(self, other: Given) -> Expression:
        return apply("less_equal", self, other)

    def __gt__(self, other: Given) -> Expression:
        return apply("greater", self, other)

    def __ge__(self, other: Given) -> Expression:
        return apply("greater_equal", self, other)

    def __eq__(self, other: object) -> Expression:  # type: ignore[override]
        return apply("equal", self, other)

    def __ne__(self, other: object) -> Expression:  # type: ignore[override]
        return apply("differs", self, other)

    __hash__ = object.__hash__

    def __neg__(self) -> Expression:
        return apply("negative", self)

    def __invert__(self) -> Expression:
        return apply("invert", self)

    def refuse(self, text: str) -> NoReturn:
        hint = "write it with the operators and functions of nanoloom.notation"
        if text.startswith(f"{self}["):
            hint = "write all indices at once, as a[i, j]"
        reason = f"{text} means nothing here: {self} is known when the program runs"
        raise Error(reason, hint=hint)

    def __bool__(self) -> NoReturn:
        raise Error(
            f"{self} is known when the program runs, not yet",
            hint="choose between values with select(condition, yes, no)",
        )


@dataclass(frozen=True, eq=False)
class Constant(Expression):
    """A number."""

    number: int | float | bool

    def __str__(self) -> str:
        return repr(self.number)


@dataclass(frozen=True, eq=False)
class Element(Expression):
    """buffer[indices]."""

    buffer: Buffer
    indices: tuple[Index, ...]

    def __str__(self) -> str:
        return f"{self.buffer.name}[{', '.join(map(str, self.indices)) or '()'}]"

    def is_same(self, other: Expression) -> bool:
        """Whether the other one is the same element of the same buffer."""
        if not isinstance(other, Element) or other.buffer is not self.buffer:
            return False
        return self.indices == other.indices


@dataclass(frozen=True, eq=False)
class Position(Expression):
    """The value of an index, an int64."""

    index: Index

    def __str__(self) -> str:
        return f"position({self.index})"


@dataclass(frozen=True, eq=False)
class Apply(Expression):
    """A word of expressions; "select" and "cast" among them."""

    word: str
    given: tuple[Expression, ...]

    @property
    def operands(self) -> tuple[Expression, ...]:
        return self.given

    def __str__(self) -> str:
        word = WORDS.get(self.word)
        texts = [inner(x) if word and word.symbol else str(x) for x in self.given]
        if word and word.symbol:
            return f" {word.symbol} ".join(texts)
        if self.word == "cast":
            texts.append(repr(self.dtype.name))
        return f"{self.word}({', '.join(texts)})"


def inner(x: Expression) -> str:
    """An operand of an operator."""
    binary = isinstance(x, Apply) and x.word in WORDS and WORDS[x.word].symbol
    return f"({x})" if binary else str(x)


# ---- making them


def apply(name: str, *given: object) -> Expression:
    """A word of WORDS over expressions of one type, and numbers.

    Raises Error for types that differ or that the word does not take.
    """
    word = WORDS[name]
    operands = matched(given, name)
    dtype = operands[0].dtype
    made = Apply(BOOL if word.compares else dtype, name, operands)
    if kind_of(dtype) not in word.takes:
        raise Error(
            f"{made} is of {dtype.name}, {word.symbol or word.name} takes {word.taken}",
            hint="cast the operands" if kind_of(dtype) != "b" else "use select",
        )
    return made


def matched(given: tuple[object, ...], name: str) -> tuple[Expression, ...]:
    """Operands of one type: numbers become constants of it."""
    found = [x for x in given if isinstance(x, Expression)]
    if not found:
        raise Error(
            f"{name} of {', '.join(map(str, given))}: no element of a buffer among them"
        )
    made = tuple(expression(x, found[0].dtype) for x in given)
    for x in made:
        if x.dtype != found[0].dtype:
            raise Error(
                f"{found[0]} is {found[0].dtype.name} and {x} is {x.dtype.name}",
                hint=f"write cast(..., {found[0].dtype.name!r}) or the like",
            )
    return made


def expression(value: object, dtype: np.dtype) -> Expression:
    """An expression as it is; a number as a constant of `dtype`, if it can be one."""
    if isinstance(value, Expression):
        return value
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Index):
        hint = f"write position({value}), an int64"
        raise Error(f"the index {value} is no value", hint=hint)
    if isinstance(value, Unknown):
        value.refuse(value.written)
    if not isinstance(value, int | float):
        raise Error(f"{value!r} is no number and no expression")
    if not is_exact(value, dtype):
        raise Error(f"{value} is no number of {dtype.name}")
    return Constant(dtype, float(value) if kind_of(dtype) == "f" else value)


def shifted(name: str, x: Expression, count: object) -> Expression:
    bits = x.dtype.itemsize * 8
    if not isinstance(count, int) or not 0 <= count < bits:
        raise Error(
            f"{x} is shifted by {count}", hint=f"shift by a number from 0 to {bits - 1}"
        )
    return apply(name, x, count)


def select(condition: object, yes: object, no: object) -> Expression:
    """yes where the condition holds, else no."""
    if not isinstance(condition, Expression) or condition.dtype != BOOL:
        raise Error(f"select by {condition}, which is no bool", hint="compare values")
    one, other = matched((yes, no), "select")
    return Apply(one.dtype, "select", (condition, one, other))


def cast(x: object, dtype: object) -> Expression:
    """The value in another element type; integers wrap, floats are rounded."""
    if not isinstance(x, Expression):
        raise Error(f"cast of {x}, which is no expression")
    made = element_type(dtype, f"cast({x})")
    return x if made == x.dtype else Apply(made, "cast", (x,))


def position(index: Index | int) -> Expression:
    """The value of an index as an int64: position(i) <= position(j)."""
    return Position(np.dtype(np.int64), index_of(index))


def parts(x: Expression) -> Iterator[Expression]:
    """An expression and all that it is made of, operands first."""
    for operand in x.operands:
        yield from parts(operand)
    yield x


def axes_of(x: Expression) -> list[Axis]:
    """The axes that an expression depends on, each once, as they appear."""
    found: dict[Axis, None] = {}
    for part in parts(x):
        indices = part.indices if isinstance(part, Element) else ()
        indices = (part.index,) if isinstance(part, Position) else indices
        found |= dict.fromkeys(axis for index in indices for axis in index.axes)
    return list(found)
