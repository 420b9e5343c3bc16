"""Conditions on sizes are what polynomials say that are never below 0."""

from __future__ import annotations

import numpy as np
import pytest

from nanoloom.dynamic.floor_division import floors_of
from nanoloom.dynamic.polynomial import Size
from nanoloom.dynamic.size_limits import Term, limits, narrowed
from nanoloom.interface.bounds import Bounds
from nanoloom.interface.size_conditions import NotKnown, parse, value

NAMES = ("m", "n")
COMPARED = (">", ">=", "<", "<=", "==", "!=")


def drawn(random: np.random.Generator, depth: int = 2) -> str:
    kind = random.integers(6) if depth else random.integers(2)
    below = depth - 1
    if kind == 0:
        return str(random.integers(-3, 8))
    if kind == 1:
        return str(random.choice(NAMES))
    if kind == 5:
        name, op = random.choice(NAMES), random.choice(["//", "%"])
        times, more, over = random.integers([1, -9, 1], [7, 9, 9])
        return f"(({times} * {name} + {more}) {op} {over})"
    sign = "+-*"[kind - 2]
    return f"({drawn(random, below)} {sign} {drawn(random, below)})"


def test_drawn_conditions_hold_where_their_limits_do() -> None:
    random = np.random.default_rng(5)
    terms = {name: Term(Size(((1, (name,)),))) for name in NAMES}
    seen = set[bool]()
    for _ in range(200):
        text = f"{drawn(random)} {random.choice(COMPARED)} {drawn(random)}"
        made = limits(parse(text), terms)
        names = [each for size in made for _, row in size.terms for each in row]
        for m, n in random.integers(0, 12, (12, 2)).tolist():
            dims = {"m": m, "n": n}
            dims |= {floor.name: floor.of(dims) for floor in floors_of(names)}
            right = value(parse(text), {"m": m, "n": n})
            assert all(size.of(dims) >= 0 for size in made) == right, (text, m, n)
            seen.add(right)
    assert seen == {False, True}


@pytest.mark.parametrize(
    "text",
    ["m * m * m * n != 3", "n // m > 1", "max(n, 2) == 2", "n > 1 or m > 1", "n"],
)
def test_what_no_polynomial_says(text: str) -> None:
    terms = {name: Term(Size(((1, (name,)),))) for name in NAMES}
    with pytest.raises(NotKnown):
        limits(parse(text), terms)


def test_bounds_by_limits() -> None:
    terms = {name: Term(Size(((1, (name,)),))) for name in NAMES}
    made = limits(parse("n > 2 and n <= 9"), terms)
    assert narrowed(Bounds(or_none=True), "n", made) == Bounds(3, 9)
    assert narrowed(Bounds(), "n", limits(parse("n > m"), terms)) is None
    assert narrowed(Bounds(2, 5), "n", ()) == Bounds(2, 5)
