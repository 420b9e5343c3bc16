"""Which cases of a test that is marked `drawn` are run.

Such a test has the product of several parameters as its cases.  As many are drawn as
hold every value of each parameter; `--all-cases` runs the whole product.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence

import pytest

Case = Mapping[str, object]


def drawn(cases: Sequence[Case], seed: str) -> list[int]:
    """The numbers of some cases: each value of each parameter is in one of them.

    In random order, the same for a seed, those that show most new values come first.
    """
    order = list(range(len(cases)))
    random.Random(seed).shuffle(order)
    values = [{(name, repr(value)) for name, value in case.items()} for case in cases]
    missing = set[tuple[str, str]]().union(*values)
    chosen: list[int] = []
    while missing:
        best = max(order, key=lambda number: len(values[number] & missing))
        chosen.append(best)
        missing -= values[best]
    return sorted(chosen)


def keep_drawn(items: list[pytest.Item]) -> list[pytest.Item]:
    """Remove the cases that are not drawn, in place, and return them."""
    groups: dict[str, list[pytest.Function]] = defaultdict(list)
    for item in items:
        if isinstance(item, pytest.Function) and item.get_closest_marker("drawn"):
            groups[item.nodeid.partition("[")[0]].append(item)
    left_out = set[pytest.Item]()
    for test, group in groups.items():
        chosen = drawn([item.callspec.params for item in group], test)
        left_out |= set(group) - {group[number] for number in chosen}
    items[:] = [item for item in items if item not in left_out]
    return list(left_out)
