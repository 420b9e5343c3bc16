"""The cheapest of all combinations of choices, by dynamic programming.

Costs are sums of terms, each of a few variables.  Variables are eliminated one by one:
the terms that a variable is in become one term of its neighbours, which holds the cost
of its best choice beside each of theirs (Bertele and Brioschi, 1972).  On a chain of
layers that is Viterbi's algorithm; residual and dense connections are cycles in it.
"""

from __future__ import annotations

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
    left, waiting = dict(choices), list(terms)
    made: list[tuple[Name, tuple[Name, ...], dict[tuple[Choice, ...], Choice]]] = []
    while left:
        beside = {v: neighbours(v, waiting) for v in left}
        chosen = min(left, key=lambda v: len(beside[v]))
        around = beside[chosen] if len(beside[chosen]) <= MOST else ()
        own = [t for t in waiting if chosen in t.variables]
        if not around:
            own = [alone(chosen, left[chosen], t) for t in own]
        table, best = eliminated(chosen, around, left, own)
        made.append((chosen, around, best))
        if around:
            waiting = [t for t in waiting if chosen not in t.variables]
            waiting.append(Term(around, table))
        else:
            taken = best[()]
            waiting = [restricted(t, chosen, taken) for t in waiting]
        del left[chosen]
    found: dict[Name, Choice] = {}
    for name, around, best in reversed(made):
        found[name] = best[tuple(found[v] for v in around)]
    return found


def neighbours(name: Name, terms: Sequence[Term[Name, Choice]]) -> tuple[Name, ...]:
    """The other variables of the terms that one is in, each once."""
    others = (v for t in terms if name in t.variables for v in t.variables)
    return tuple(dict.fromkeys(v for v in others if v != name))


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
    if name not in term.variables:
        return term
    at = term.variables.index(name)
    rest = {
        (*key[:at], *key[at + 1 :]): cost
        for key, cost in term.costs.items()
        if key[at] == taken
    }
    return Term((*term.variables[:at], *term.variables[at + 1 :]), rest)
