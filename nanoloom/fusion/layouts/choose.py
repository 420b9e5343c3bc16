"""The cheapest of all combinations of choices, by dynamic programming.

Costs are sums of terms, each of a few variables.  Variables are eliminated one by one:
the terms that a variable is in become one term of its neighbours, which holds the cost
of its best choice beside each of theirs (Bertele and Brioschi, 1972).  On a chain of
layers that is Viterbi's algorithm; residual and dense connections are cycles in it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import inf
from typing import Generic, TypeVar

Name = TypeVar("Name", bound=Hashable)
Choice = TypeVar("Choice", bound=Hashable)
MOST = 6  # variables beside one: with more of them it takes what is best alone


@dataclass(frozen=True)
class Term(Generic[Name, Choice]):
    """A part of the cost: of each combination of its variables' choices."""

    variables: tuple[Name, ...]
    costs: Mapping[tuple[Choice, ...], float]

    def at(self, chosen: Mapping[Name, Choice]) -> float:
        return self.costs.get(tuple(chosen[v] for v in self.variables), inf)


def cheapest(
    choices: Mapping[Name, Sequence[Choice]], terms: Sequence[Term[Name, Choice]]
) -> dict[Name, Choice]:
    """Each variable's choice.  A combination that a term does not have is none.

    Of equally cheap choices the one that stands first is taken.
    """
    left, waiting = dict(choices), Waiting(terms)
    made: list[tuple[Name, tuple[Name, ...], dict[tuple[Choice, ...], Choice]]] = []
    beside = {v: waiting.neighbours(v) for v in left}
    while left:
        chosen = min(left, key=lambda v: len(beside[v]))
        others = beside[chosen]
        around = others if len(others) <= MOST else ()
        own = waiting.of(chosen)
        if not around:
            own = [alone(chosen, left[chosen], t) for t in own]
        table, best = eliminated(chosen, around, left, own)
        made.append((chosen, around, best))
        if around:
            waiting.replace(chosen, Term(around, table))
        else:
            waiting.restrict(chosen, best[()])
        del left[chosen]
        beside.update({v: waiting.neighbours(v) for v in others})
    found: dict[Name, Choice] = {}
    for name, around, best in reversed(made):
        found[name] = best[tuple(found[v] for v in around)]
    return found


class Waiting(Generic[Name, Choice]):
    """Terms of variables without a choice, found by variable, oldest first."""

    def __init__(self, terms: Sequence[Term[Name, Choice]]) -> None:
        self._terms: dict[int, Term[Name, Choice]] = {}
        self._places: defaultdict[Name, list[int]] = defaultdict(list)
        self._count = 0
        for term in terms:
            self.add(term)

    def add(self, term: Term[Name, Choice]) -> None:
        self._terms[self._count] = term
        for variable in dict.fromkeys(term.variables):
            self._places[variable].append(self._count)
        self._count += 1

    def of(self, name: Name) -> list[Term[Name, Choice]]:
        """The terms that a variable is in."""
        return [self._terms[place] for place in self._places[name]]

    def neighbours(self, name: Name) -> tuple[Name, ...]:
        """The other variables of the terms that one is in, each once."""
        others = (v for t in self.of(name) for v in t.variables)
        return tuple(dict.fromkeys(v for v in others if v != name))

    def replace(self, name: Name, term: Term[Name, Choice]) -> None:
        """One term in place of those that a variable is in, which goes with them."""
        for place in self._places.pop(name):
            for variable in dict.fromkeys(self._terms.pop(place).variables):
                if variable != name:
                    self._places[variable].remove(place)
        self.add(term)

    def restrict(self, name: Name, taken: Choice) -> None:
        """Of the terms that a variable is in, those parts where it has this choice."""
        for place in self._places.pop(name, ()):
            self._terms[place] = restricted(self._terms[place], name, taken)


def eliminated(
    name: Name,
    around: tuple[Name, ...],
    choices: Mapping[Name, Sequence[Choice]],
    terms: Sequence[Term[Name, Choice]],
) -> tuple[dict[tuple[Choice, ...], float], dict[tuple[Choice, ...], Choice]]:
    """For each choice of the variables around one: the least cost, and its choice."""
    table: dict[tuple[Choice, ...], float] = {}
    best: dict[tuple[Choice, ...], Choice] = {}
    for beside in product(*(choices[v] for v in around)):
        others = dict(zip(around, beside, strict=True))
        costs = {
            own: sum(t.at({**others, name: own}) for t in terms)
            for own in choices[name]
        }
        best[beside] = min(costs, key=lambda own: costs[own])
        table[beside] = costs[best[beside]]
    return table, best


def alone(
    name: Name, own: Sequence[Choice], term: Term[Name, Choice]
) -> Term[Name, Choice]:
    """A term as if the others in it chose what suits this variable."""
    at = term.variables.index(name)
    least = {
        (choice,): min(
            (cost for key, cost in term.costs.items() if key[at] == choice),
            default=inf,
        )
        for choice in own
    }
    return Term((name,), least)


def restricted(
    term: Term[Name, Choice], name: Name, taken: Choice
) -> Term[Name, Choice]:
    """A term of which one variable's choice is known."""
    at = term.variables.index(name)
    rest = {
        (*key[:at], *key[at + 1 :]): cost
        for key, cost in term.costs.items()
        if key[at] == taken
    }
    return Term((*term.variables[:at], *term.variables[at + 1 :]), rest)
