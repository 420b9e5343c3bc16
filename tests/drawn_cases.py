"""Which cases of a test that is marked `drawn` are run.

    @pytest.mark.drawn                          a product: each value of each parameter
    @pytest.mark.drawn(one_in=3)                a list: a third of it
    @pytest.mark.drawn(one_in=3, kind=family)   and one at least of each kind

kind: takes the parameters of a case by their names.  `--all-cases` runs all of them.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence

import pytest

Case = Mapping[str, object]
Kind = Callable[..., Hashable]


def drawn(cases: Sequence[Case], seed: str) -> list[int]:
    """The numbers of some cases: each value of each parameter is in one of them.

    In random order, the same for a seed, those that show most new values come first.
    """
    order = shuffled(len(cases), seed)
    values = [{(name, repr(value)) for name, value in case.items()} for case in cases]
    missing = set[tuple[str, str]]().union(*values)
    chosen: list[int] = []
    while missing:
        best = max(order, key=lambda number: len(values[number] & missing))
        chosen.append(best)
        missing -= values[best]
    return sorted(chosen)


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
