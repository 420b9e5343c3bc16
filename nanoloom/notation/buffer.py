"""Buffers, and the statements that say what is in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from nanoloom.errors import Error
from nanoloom.notation.expression import (
    Apply,
    Element,
    Expression,
    axes_of,
    expression,
    parts,
)
from nanoloom.notation.extents import extents_of
from nanoloom.notation.functions_table import WORDS, element_type
from nanoloom.notation.index import Axis, index_of
from nanoloom.notation.unknown import Unknown


@dataclass(frozen=True, eq=False)
class Statement:
    """buffer[axes] = value, or combined with value over the reduced axes.

    combine: a word of WORDS, "" where nothing is reduced.  text: as it was written.
    """

    buffer: Buffer
    axes: tuple[Axis, ...]
    value: Expression
    combine: str
    reduced: tuple[Axis, ...]
    extents: Mapping[Axis, int]
    text: str

    @property
    def reads(self) -> tuple[Element, ...]:
        return tuple(x for x in parts(self.value) if isinstance(x, Element))

    def __str__(self) -> str:
        loops = [f"{axis} in 0..{self.extents[axis]}" for axis in self.axes]
        over = [f"{axis} in 0..{self.extents[axis]}" for axis in self.reduced]
        text = f"{self.text} for {', '.join(loops)}" if loops else self.text
        return f"{text} over {', '.join(over)}" if over else text


class Buffer(Unknown):
    """A name, a shape and an element type; what it holds is said by assignments.

        c[i, j] += a[i, k] * b[k, j]
        d[i, j] = minimum(d[i, j], a[i, k] + b[k, j])
        e[i, j] = exp(c[i, j])

    Without an assignment it is an input.  shape: None for what the first assignment
    says.  Raises Error for a shape or an element type that is none.
    """

    def __init__(
        self, name: str, shape: Sequence[int] | None = None, dtype: object = "float32"
    ) -> None:
        if not name.isidentifier():
            raise Error(f"{name!r} is no name for a buffer")
        self.name = name
        self.dtype = element_type(dtype, f"buffer {name}")
        self.shape = None if shape is None else checked_shape(name, shape)
        self.array: np.ndarray | None = None
        self.statements: list[Statement] = []
        self.read_by = ""  # the first other buffer that is made of it

    def __getitem__(self, given: object) -> Element:
        indices = tuple(map(index_of, given if isinstance(given, tuple) else (given,)))
        if self.shape is not None and len(indices) != len(self.shape):
            raise Error(
                f"{self.name} has {len(self.shape)} dimensions and gets "
                f"{len(indices)} indices: {', '.join(map(str, indices)) or '()'}"
            )
        return Element(self.dtype, self, indices)

    def __setitem__(self, given: object, value: object) -> None:
        target = self[given]
        made = expression(value, self.dtype)
        text = f"{target} = {made}"
        if made.dtype != self.dtype:
            raise Error(
                f"{self.name} is {self.dtype.name} and the value {made.dtype.name}",
                where=text,
                hint=f"write cast(..., {self.dtype.name!r})",
            )
        statement = stated(target, made, text)
        self._require_turn(statement)
        for read in statement.reads:
            if read.buffer is not self and not read.buffer.read_by:
                read.buffer.read_by = self.name
        self.shape = tuple(statement.extents[axis] for axis in statement.axes)
        self.statements.append(statement)

    @property
    def written(self) -> str:
        return self.name

    def refuse(self, text: str) -> NoReturn:
        raise Error(
            f"{text} means nothing: {self.name} is a buffer, no value",
            hint=f"write elements of it, as {self.name}[i, j]",
        )

    def _require_turn(self, statement: Statement) -> None:
        """Raise Error if a statement comes too late, or too early."""
        where = statement.text
        again = any(read.buffer is self for read in statement.reads)
        if self.array is not None:
            raise Error(f"{self.name} is a constant", where=where)
        if self.read_by:
            raise Error(
                f"{self.read_by} is already made of {self.name}",
                where=where,
                hint=f"say first all that {self.name} is",
            )
        if self.statements and not statement.combine and not again:
            raise Error(f"{self.name} is written already", where=where)
        if again and not self.statements:
            raise Error(f"{self.name} is read before it is written", where=where)

    def __str__(self) -> str:
        shape = "x".join(map(str, (*(self.shape or ()), self.dtype.name)))
        return f"{self.name}: {shape}"


def constant(name: str, array: object) -> Buffer:
    """A buffer whose elements are known while compiling: a weight or a table."""
    copy = np.array(array, order="C")
    if copy.dtype == np.float64 and not isinstance(array, np.ndarray):
        copy = copy.astype(np.float32)  # Python's numbers
    made = Buffer(name, copy.shape, copy.dtype)
    made.array = copy
    return made


def checked_shape(name: str, given: Sequence[object]) -> tuple[int, ...]:
    made: list[int] = []
    for size in given:
        if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1:
            raise Error(
                f"the shape {list(given)} is none",
                where=f"buffer {name}",
                hint="give whole numbers from 1 on",
            )
        made.append(int(size))
    return tuple(made)


# ---- what an assignment means


def stated(target: Element, made: Expression, text: str) -> Statement:
    """The statement of an assignment, with the extents of its axes."""
    axes = written_axes(target, text)
    reduced = sorted(
        (axis for axis in axes_of(made) if axis not in axes), key=lambda a: a.place
    )
    names = [axis.name for axis in (*axes, *reduced)]
    for axis in axes_of(made):
        if names.count(axis.name) > 1:
            raise Error(f"there are two axes {axis.name}", where=text)
    require_same_element(target, made, text)
    combine, value = "", made
    if reduced:
        combine, value = combined(target, made, reduced[0], text)
    extents = extents_of(target, value, (*axes, *reduced), text)
    return Statement(target.buffer, axes, value, combine, tuple(reduced), extents, text)


def written_axes(target: Element, text: str) -> tuple[Axis, ...]:
    """The axes of what is written: each index is one of its own."""
    axes = [index.plain for index in target.indices]
    if None in axes or len(set(axes)) != len(axes):
        raise Error(
            f"{target} is written at indices that are not each an axis of its own",
            where=text,
            hint="write every element: b[i, j] = ..., and shift what is read",
        )
    return tuple(axis for axis in axes if axis is not None)


def require_same_element(target: Element, made: Expression, text: str) -> None:
    """A statement reads of its own buffer only the element that it writes."""
    for x in parts(made):
        other = isinstance(x, Element) and x.buffer is target.buffer
        if other and not target.is_same(x):
            raise Error(
                f"{x} is another element of what is written",
                where=text,
                hint="elements of a buffer are made independently of each other",
            )


def combined(
    target: Element, made: Expression, axis: Axis, text: str
) -> tuple[str, Expression]:
    """How a statement reduces: the word, and what it combines the element with."""
    if isinstance(made, Apply) and len(made.given) == 2:
        one, other = made.given
        word = made.word
        if target.is_same(other) and word != "subtract":
            one, other = other, one
        alone = not any(target.is_same(x) for x in parts(other))
        if target.is_same(one) and alone and word == "subtract":
            return "add", Apply(other.dtype, "negative", (other,))
        if target.is_same(one) and alone and WORDS[word].starts:
            return word, other
    ways = ", ".join(w.symbol or w.name for w in WORDS.values() if w.starts)
    raise Error(
        f"axis {axis} is not among the indices of {target}, and no reduction is said",
        where=text,
        hint=f"combine the element with the rest by one of {ways}: "
        f"{target} += ... or {target} = minimum({target}, ...)",
    )
