"""Expressions: how they are written, their types, and what is refused."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable

import numpy as np
import pytest

from nanoloom import notation
from nanoloom.errors import Error
from nanoloom.notation import (
    Buffer,
    axes,
    cast,
    exp,
    maximum,
    popcount,
    position,
    select,
)
from nanoloom.notation.bodies import BODIES
from nanoloom.notation.expression import Expression
from nanoloom.notation.functions_table import WORDS

(i,) = axes("i")
BUFFER = Buffer("b", (8,))
f = Buffer("f", (8,))[i]
h = Buffer("h", (8,), "bfloat16")[i]
n = Buffer("n", (8,), "int8")[i]
u = Buffer("u", (8,), "uint8")[i]
t = Buffer("t", (8,), "bool")[i]


@pytest.mark.parametrize(
    ("made", "text", "dtype"),
    [
        (f + 1, "f[i] + 1.0", "float32"),
        (1 - f * 2, "1.0 - (f[i] * 2.0)", "float32"),
        (h / 3, "h[i] / 3.0", "bfloat16"),
        (n & 7 | n, "(n[i] & 7) | n[i]", "int8"),
        (~(u ^ 255), "invert(u[i] ^ 255)", "uint8"),
        (u >> 3, "u[i] >> 3", "uint8"),
        (-exp(f), "negative(exp(f[i]))", "float32"),
        (maximum(0, f), "maximum(0.0, f[i])", "float32"),
        ((f < 1) & t, "(f[i] < 1.0) & t[i]", "bool"),
        (f == f, "f[i] == f[i]", "bool"),
        (t != True, "t[i] != True", "bool"),  # noqa: E712
        (select(n > 0, f, 0), "select(n[i] > 0, f[i], 0.0)", "float32"),
        (cast(n, "int32") * 300, "cast(n[i], 'int32') * 300", "int32"),
        (position(2 * i + 1) <= 5, "position(2 * i + 1) <= 5", "bool"),
        (f + np.float32(0.5), "f[i] + 0.5", "float32"),
        (np.float32(0.5) * f, "0.5 * f[i]", "float32"),
        (np.int64(2) - n, "2 - n[i]", "int8"),
    ],
)
def test_expressions(made: Expression, text: str, dtype: str) -> None:
    assert str(made) == text
    assert made.dtype.name == dtype


def test_a_cast_to_the_same_type_is_nothing() -> None:
    assert cast(f, "float32") is f


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: f + n, r"f\[i\] is float32 and n\[i\] is int8; write cast"),
        (lambda: n + 1.5, "1.5 is no number of int8"),
        (lambda: n + 128, "128 is no number of int8"),
        (lambda: u - -1, "-1 is no number of uint8"),
        (lambda: f + True, "True is no number of float32"),
        (lambda: f + "x", "'x' is no number and no expression"),
        (lambda: f + i, r"the index i is no value; write position\(i\)"),
        (lambda: n / 2, r"n\[i\] / 2 is of int8, / takes floats; cast the operands"),
        (lambda: t + t, r"is of bool, \+ takes floats and integers; use select"),
        (lambda: f & f, "& takes integers and bool"),
        (lambda: popcount(f), "popcount takes integers"),
        (lambda: exp(n), "exp takes floats"),
        (lambda: n << 8, "is shifted by 8; shift by a number from 0 to 7"),
        (lambda: maximum(1, 2), "maximum of 1, 2: no element of a buffer"),
        (lambda: select(n, f, f), r"select by n\[i\], which is no bool"),
        (lambda: select(True, f, f), "select by True, which is no bool"),
        (lambda: cast(f, "int4"), r"cast\(f\[i\]\): int4 is no element type; choose"),
        (lambda: cast(1, "int8"), "cast of 1, which is no expression"),
        (lambda: f // 2, r"f\[i\] // 2 means nothing here: f\[i\] is known when"),
        (lambda: 2 // f, r"2 // f\[i\] means nothing"),
        (lambda: f % 2, r"f\[i\] % 2 means .*; write it with the operators and"),
        (lambda: f**2, r"f\[i\] \*\* 2 means nothing"),
        (lambda: f @ f, r"f\[i\] @ f\[i\] means nothing"),
        (lambda: divmod(f, 2), r"divmod\(f\[i\], 2\) means nothing"),
        (lambda: 2 << n, r"2 << n\[i\] means nothing"),
        (lambda: abs(f), r"abs\(f\[i\]\) means nothing"),
        (lambda: builtins.round(f), r"round\(f\[i\]\) means nothing"),
        (lambda: +f, r"\+f\[i\] means nothing"),
        (lambda: math.exp(f), r"float\(f\[i\]\) means nothing"),
        (lambda: list(f), r"iter\(f\[i\]\) means nothing"),
        (lambda: f[i], r"f\[i\]\[i\] means nothing .*; write all indices at once"),
        (lambda: np.exp(f), r"np.exp\(f\[i\]\) means nothing .* of nanoloom.notation"),
        (lambda: np.sum(f), r"np.sum\(f\[i\]\) means nothing"),
        (lambda: np.add.reduce(f), r"np.add\(f\[i\]\) means nothing"),
        (lambda: np.where(f < 1, f, 0), r"np.where\(f\[i\] < 1.0, f\[i\], 0\) means"),
        (lambda: np.ones(3) * f, r"np.multiply\(an array, f\[i\]\) means nothing"),
        (lambda: f * BUFFER, "b means nothing: b is a buffer, no value; write elem"),
        (lambda: BUFFER * f, r"b \* f\[i\] means nothing: b is a buffer"),
        (lambda: BUFFER + 1, r"b \+ 1 means .*; write elements of it, as b\[i, j\]"),
        (lambda: -BUFFER, "-b means nothing"),
        (lambda: np.exp(BUFFER), r"np.exp\(b\) means nothing"),
        (lambda: len(BUFFER), r"len\(b\) means nothing"),
        (lambda: bool(f < 1), "is known when the program runs, not yet; choose"),
    ],
)
def test_refusals(make: Callable[[], object], sentence: str) -> None:
    with pytest.raises(Error, match=sentence):
        make()


def test_all_names_shadow_no_word_of_python() -> None:
    assert not set(notation.__all__) & set(dir(builtins))
    assert str(notation.round(f)) == "round(f[i])"


def test_every_word_has_a_body() -> None:
    assert BODIES.keys() == WORDS.keys()
