"""The cheapest of all combinations, against all of them."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from nanoloom.fusion.layouts.choose import MOST, Term, cheapest

Terms = list[Term[int, str]]
Choices = dict[int, tuple[str, ...]]


def total(terms: Terms, chosen: dict[int, str]) -> float:
    return sum(term.at(chosen) for term in terms)


def drawn(r: np.random.Generator, count: int) -> tuple[Choices, Terms]:
    """Variables of one to three choices, and terms of one to three of them."""
    choices = {v: tuple("abc"[: r.integers(1, 4)]) for v in range(count)}
    terms: Terms = []
    for _ in range(2 * count):
        names = r.choice(count, r.integers(1, 4), replace=False)
        variables = tuple(int(v) for v in names)
        keys = list(product(*(choices[v] for v in variables)))
        costs = {key: float(r.integers(20)) for key in keys if r.random() < 0.95}
        terms.append(Term(variables, costs or {keys[0]: 1.0}))
    return choices, terms


@pytest.mark.parametrize("seed", range(40))
def test_random_terms(seed: int) -> None:
    choices, terms = drawn(np.random.default_rng(seed), 6)
    chosen = cheapest(choices, terms)
    every = product(*choices.values())
    best = min(total(terms, dict(zip(choices, one, strict=True))) for one in every)
    assert total(terms, chosen) == best
    assert all(chosen[v] in given for v, given in choices.items())


def test_a_variable_beside_many_takes_what_is_best_for_it() -> None:
    """Of more variables than are looked at together."""
    many = range(1, MOST + 3)
    choices = dict.fromkeys((0, *many), ("a", "b"))
    every = [Term((v, w), {("a", "a"): 1.0, ("b", "b"): 0.0, ("a", "b"): 2.0,
                           ("b", "a"): 2.0})
             for v in choices for w in choices if v < w]  # fmt: skip
    assert set(cheapest(choices, every).values()) == {"b"}


def test_the_first_of_equal_choices() -> None:
    terms: Terms = [Term((0,), {("a",): 1.0, ("b",): 1.0})]
    assert cheapest({0: ("b", "a")}, terms) == {0: "b"}
    assert cheapest({0: ("a", "b")}, terms) == {0: "a"}
    assert cheapest({}, terms[:0]) == {}
