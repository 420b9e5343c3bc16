"""Axes and indices."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from nanoloom.errors import Error
from nanoloom.notation import axes
from nanoloom.notation.index import Index, index_of

i, j = axes("i j")


@pytest.mark.parametrize(
    ("index", "text"),
    [
        (i, "i"),
        (i + 1, "i + 1"),
        (1 + i, "i + 1"),
        (i - 1, "i - 1"),
        (2 * i + j * 3 - 4, "2 * i + 3 * j - 4"),
        (9 - i, "-1 * i + 9"),
        (i + j - i, "j"),
        (0 * i, "0"),
        (i - i + 5, "5"),
    ],
)
def test_indices_are_sums(index: Index, text: str) -> None:
    assert str(index) == text


def test_the_ends_of_an_index() -> None:
    (a,), (b,) = i.axes, j.axes
    assert (2 * i - j + 1).ends({a: 5, b: 3}) == (-1, 9)


def test_axes_are_their_names() -> None:
    assert axes("i, j") == (i, j)
    assert axes("k", k=3) != axes("k")


def test_reduced_axes_nest_as_they_are_named() -> None:
    places = [index.axes[0].place for index in axes("a b c")]
    assert places == sorted(places)


def test_numbers_of_numpy_are_numbers() -> None:
    two = np.int64(2)
    made = [two * i, i * two, i + two, two + i, i - two, two - i]
    wanted = [2 * i, 2 * i, i + 2, i + 2, i - 2, 2 - i]
    assert made == wanted and all(type(x.offset) is int for x in made)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: i * j, r"the index \(i\) \* \(j\) is no sum of axes times numbers"),
        (lambda: i // 2, r"the index i // 2 is no sum"),
        (lambda: i % 2, "the index i % 2 is no sum"),
        (lambda: (i + 1) // 2, r"the index \(i \+ 1\) // 2 is no sum"),
        (lambda: i / 2, "the index i / 2 is no sum"),
        (lambda: 2 / i, "the index 2 / i is no sum"),
        (lambda: 1.5 * i, r"the index \(i\) \* 1.5 is no sum"),
        (lambda: i + 0.5, r"the index i \+ 0.5 is no sum"),
        (lambda: i - "x", "the index i - x is no sum"),
        (lambda: i & 1, "the index i & 1 is no sum"),
        (lambda: abs(i), r"the index abs\(i\) is no sum"),
        (lambda: np.exp(i), r"the index np.exp\(i\) is no sum"),
        (lambda: range(i), r"the index index\(i\) is no sum"),
        (lambda: i[0], r"the index i\[0\] is no sum"),
        (lambda: i < j, r"the index i is no value .* write position\(i\)"),
        (lambda: index_of(1.5), "the index 1.5 is no sum"),
        (lambda: index_of(True), "the index True is no sum"),
        (lambda: axes("i 2"), "'2' is no name for an axis"),
        (lambda: axes("i", j=3), "given for j, which is none of 'i'"),
        (lambda: axes("i", i=0), "axis i has the extent 0; give at least 1"),
    ],
)
def test_what_is_no_index(make: Callable[[], object], sentence: str) -> None:
    with pytest.raises(Error, match=sentence):
        make()
