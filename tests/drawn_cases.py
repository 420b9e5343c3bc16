"""Which cases of a test that is marked `drawn` are run.

    @pytest.mark.drawn                          a product: each value of each parameter,
                                                and of more than three sizes a third
    @pytest.mark.drawn(one_in=3)                a list: a third of it
    @pytest.mark.drawn(one_in=3, kind=family)   and one at least of each kind

kind: takes the parameters of a case by their names.  `--all-cases` runs all of them,
and all examples of `few_examples`.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import astuple, is_dataclass

import pytest
from hypothesis import settings

Case = Mapping[str, object]
Kind = Callable[..., Hashable]
FEW_SIZES = 3  # of a parameter: all of them are shown


class Asked:
    """What the command line says; examples are counted while tests are imported."""

    all_cases = False


def few_examples(count: int, *, derandomize: bool = False) -> settings:
    """For hypothesis, where each example is compiled: half of them, or all cases."""
    most = count if Asked.all_cases else -(-count // 2)
    return settings(max_examples=most, deadline=None, derandomize=derandomize)


def drawn(cases: Sequence[Case], seed: str) -> list[int]:
    """The numbers of some cases: each value of each parameter is in one of them.

    Of sizes (and seeds) a third is enough: they are many points of one mechanism.  In
    random order, the same for a seed, those that show most new values come first.
    """
    order = shuffled(len(cases), seed)
    values = [{(name, repr(value)) for name, value in case.items()} for case in cases]
    missing = set[tuple[str, str]]().union(*values) - spared(cases, order)
    chosen: list[int] = []
    while missing:
        best = max(order, key=lambda number: len(values[number] & missing))
        chosen.append(best)
        missing -= values[best]
    return sorted(chosen)


def spared(cases: Sequence[Case], order: Sequence[int]) -> set[tuple[str, str]]:
    """The values that no case has to show: two thirds of a parameter's sizes."""
    found: dict[str, dict[str, bool]] = defaultdict(dict)
    for number in order:
        for name, value in cases[number].items():
            found[name][repr(value)] = is_size(value)
    left = set[tuple[str, str]]()
    for name, values in found.items():
        if all(values.values()):
            shown = max(FEW_SIZES, -(-len(values) // 3))
            left |= {(name, value) for value in [*values][shown:]}
    return left


def is_size(value: object) -> bool:
    """Whether it is numbers alone: an extent, a shape, a seed."""
    if is_dataclass(value) and not isinstance(value, type):
        value = astuple(value)
    if isinstance(value, tuple | list):
        return all(map(is_size, value))
    return isinstance(value, int | float) and not isinstance(value, bool)


def sampled(
    cases: Sequence[Case], seed: str, one_in: int, kind: Kind | None = None
) -> list[int]:
    """The numbers of one in so many cases, rounded up, and one of each kind at least.

    At random, the same for a seed.
    """
    order = shuffled(len(cases), seed)
    first: dict[Hashable, int] = {}
    if kind is not None:
        for number in order:
            first.setdefault(kind(**cases[number]), number)
    chosen = set(first.values())
    others = [number for number in order if number not in chosen]
    wanted = -(-len(cases) // one_in) - len(chosen)
    return sorted(chosen.union(others[: max(wanted, 0)]))


def shuffled(count: int, seed: str) -> list[int]:
    order = list(range(count))
    random.Random(seed).shuffle(order)
    return order


def keep_drawn(items: list[pytest.Item]) -> list[pytest.Item]:
    """Remove the cases that are not drawn, in place, and return them."""
    groups: dict[str, list[pytest.Function]] = defaultdict(list)
    for item in items:
        if isinstance(item, pytest.Function) and item.get_closest_marker("drawn"):
            groups[item.nodeid.partition("[")[0]].append(item)
    left_out = set[pytest.Item]()
    for test, group in groups.items():
        mark = group[0].get_closest_marker("drawn")
        assert mark is not None
        how = sampled if mark.kwargs else drawn
        chosen = how([item.callspec.params for item in group], test, **mark.kwargs)
        left_out |= set(group) - {group[number] for number in chosen}
    items[:] = [item for item in items if item not in left_out]
    return list(left_out)
