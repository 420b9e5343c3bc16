"""Statements: what an assignment means, the extents of its axes, and refusals."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from nanoloom.errors import Error
from nanoloom.notation import Buffer, axes, computation, constant, minimum

i, j, k, r = axes("i j k r")
a, b = Buffer("a", (6, 8)), Buffer("b", (8, 5))
line = Buffer("line", (10,))


def assigned(target: Buffer, indices: object, value: object) -> Buffer:
    target[indices] = value
    return target


def test_a_reduction_is_what_combines_the_element() -> None:
    c = Buffer("c")
    c[i, j] += a[i, k] * b[k, j]
    (statement,) = c.statements
    assert str(statement) == (
        "c[i, j] = c[i, j] + (a[i, k] * b[k, j]) "
        "for i in 0..6, j in 0..5 over k in 0..8"
    )
    assert (statement.combine, c.shape) == ("add", (6, 5))


def test_the_element_may_stand_second() -> None:
    c = Buffer("c")
    c[i] = minimum(a[i, k], c[i])
    assert c.statements[0].combine == "minimum"


@pytest.mark.parametrize(
    ("indices", "value", "shape"),
    [
        ((i,), line[i] + line[i + 2], (8,)),
        ((i,), line[2 * i], (5,)),
        ((i,), line[9 - i], (10,)),
        ((i, j), line[i] * line[j], (10, 10)),
        ((j, i), a[i, j], (8, 6)),
        ((i,), line[0] + line[i + 9], (1,)),
    ],
)
def test_shapes_follow(indices: object, value: object, shape: tuple[int, ...]) -> None:
    assert assigned(Buffer("c"), indices, value).shape == shape


def test_a_window_leaves_room_for_itself() -> None:
    w, c = Buffer("w", (3,)), Buffer("c")
    c[i] += w[r] * line[i + r]
    assert c.shape == (8,)
    (s,) = axes("s", s=4)
    d = Buffer("d")
    d[i] = minimum(d[i], line[2 * i + s])
    assert d.shape == (4,)


REFUSED: list[tuple[Callable[[], object], str]] = [
    (lambda: a[i], "a has 2 dimensions and gets 1 indices: i"),
    (lambda: Buffer("2x"), "'2x' is no name for a buffer"),
    (lambda: Buffer("x", (3, 0)), r"buffer x: the shape \[3, 0\] is none"),
    (lambda: Buffer("x", (3,), "int7"), "buffer x: int7 is no element type"),
    (
        lambda: assigned(Buffer("c", (6, 5)), (i, j), a[i, j]),
        r"c\[i, j\] = a\[i, j\]: axis j is 5 \(dimension 1 of c\) and 8 "
        r"\(dimension 1 of a\); give buffers that agree",
    ),
    (
        lambda: assigned(Buffer("c", (7,)), i, line[i + 4]),
        r"line\[i \+ 4\] is out of bounds: index i \+ 4 reaches 10, dimension 0 of "
        "line has the size 10; shift",
    ),
    (
        lambda: assigned(Buffer("c"), i, line[i - 1]),
        "index i - 1 reaches -1, dimension 0 of line",
    ),
    (
        lambda: assigned(Buffer("c"), (i, j), line[i + j]),
        r"no shape says the extent of axis i; state it: axes\(",
    ),
    (
        lambda: assigned(Buffer("c"), (i, j), a[i, j] + a[i, axes("j", j=2)[0]]),
        "there are two axes j",
    ),
    (
        lambda: assigned(Buffer("c"), (i, i), line[i]),
        r"c\[i, i\] is written at indices that are not each an axis of its own",
    ),
    (lambda: assigned(Buffer("c"), (i + 1,), line[i]), "not each an axis"),
    (
        lambda: assigned(Buffer("c"), i, a[i, k]),
        r"axis k is not among the indices of c\[i\], and no reduction is said; combine",
    ),
    (
        lambda: assigned(c := Buffer("c"), i, c[i] / a[i, k]),
        "no reduction is said",
    ),
    (
        lambda: assigned(c := Buffer("c"), i, c[i] + c[i] * a[i, k]),
        "no reduction is said",
    ),
    (
        lambda: assigned(c := Buffer("c", (6,)), i, c[i - 1] + a[i, 0]),
        r"c\[i - 1\] is another element of what is written; elements of a buffer",
    ),
    (
        lambda: assigned(c := Buffer("c", (10,)), i, -c[i] + line[i]),
        "c is read before it is written",
    ),
    (
        lambda: assigned(assigned(Buffer("c"), i, line[i]), i, line[i]),
        "c is written already",
    ),
    (
        lambda: assigned(constant("c", np.ones(10, np.float32)), i, line[i]),
        "c is a constant",
    ),
    (
        lambda: assigned(Buffer("c", None, "int32"), i, line[i]),
        "c is int32 and the value float32; write cast",
    ),
    (
        lambda: assigned(Buffer("c", (3,), "int8"), i, 1000),
        "1000 is no number of int8",
    ),
    (
        lambda: assigned(Buffer("c"), i, Buffer("d")[i]),
        "d has no shape yet; give it one, or write d first",
    ),
    (lambda: computation(a[i, j]), r"a\[i, j\] is no buffer; give buffers"),  # type: ignore[arg-type]
    (
        lambda: computation(assigned(Buffer("c", (1 << 30, 1 << 20)), (i, j), 0)),
        "c: 1073741824x1048576xfloat32 needs 4.5e.*GB|needs .* TB, .* are free",
    ),
    (lambda: computation(), "has at least one output"),
    (lambda: computation(a), "buffer a: is an output, but no statement writes it"),
]


@pytest.mark.parametrize(("make", "sentence"), REFUSED)
def test_refusals(make: Callable[[], object], sentence: str) -> None:
    with pytest.raises(Error, match=sentence):
        make()


def test_a_refused_statement_changes_nothing() -> None:
    c = Buffer("c")
    with pytest.raises(Error):
        c[i] = line[i - 1]
    assert (c.shape, c.statements) == (None, [])


def test_what_is_read_is_not_written_any_more() -> None:
    c = assigned(Buffer("c"), i, line[i])
    assigned(Buffer("d"), i, -c[i])
    with pytest.raises(Error, match="d is already made of c; say first all that c is"):
        c[i] += line[i]
    with pytest.raises(Error, match="d is already made of line"):
        other = Buffer("line", (10,))
        assigned(Buffer("d"), i, other[i])
        other[i] = 1


def test_two_buffers_of_one_name() -> None:
    c = assigned(Buffer("c"), i, line[i] + Buffer("line", (10,))[i])
    with pytest.raises(Error, match="there are two buffers line; rename one"):
        computation(c)


def test_a_computation_prints_and_has_a_digest() -> None:
    def made(number: float) -> object:
        c = assigned(Buffer("c"), i, line[i] * constant("w", np.float32([number]))[0])
        return computation(c)

    one = made(1)
    assert str(one).splitlines() == [
        "input line: 10xfloat32",
        "constant w: 1xfloat32",
        "c[i] = line[i] * w[0] for i in 0..10",
        "output c: 10xfloat32",
    ]
    assert one.digest == made(1).digest != made(2).digest
