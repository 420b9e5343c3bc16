"""Products whose results lie in another order than their loops, of drawn sizes.

Tiles are given in the order of loops: of the product's own where nothing follows it, of
the result's where something does, or where sums of a part of k wait elsewhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nanoloom.target import by_name
from tests.linalg.bounds import sample, wide
from tests.vector.checks import check
from tests.vector.kernel_harness import run

SIZES = 1, 2, 3, 5, 7, 13, 17, 33
LEVELS = "x86-64-v2", "x86-64-v3"  # with few lanes, right operands are copied


def compare(text: str, sizes: dict[str, int], level: str, *, ends: bool) -> None:
    """A product beside float64; ends: with something behind it, in the same kernel."""

    def make(b: Any, x: Any, y: Any) -> Any:
        made = b.einsum(text, x, y)
        return b.elementwise(lambda s: s + s, made) if ends else made

    arrays = [
        sample(i, tuple(sizes[a] for a in axes), "float32")
        for i, axes in enumerate(text.partition("->")[0].split(","))
    ]
    x, y = (wide(a) * (1 + ends * i) for i, a in enumerate(arrays))
    exact, size = np.einsum(text, x, y), np.einsum(text, abs(x), abs(y))
    check(run(make, *arrays, target=by_name(level)), exact, sizes["k"], size)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("bhmk,bhkn->bmhn", {"b": 2, "h": 3, "m": 5, "k": 7, "n": 11}),
        ("hmk,kn->mhn", {"h": 5, "m": 5, "k": 2100, "n": 37}),
    ],
)
def test_copied_operands(text: str, sizes: dict[str, int], level: str) -> None:
    """One panel for all of a sum, and sums in parts."""
    compare(text, sizes, level, ends=False)


@pytest.mark.parametrize("seed", range(4))
def test_the_result_is_right_in_any_order(seed: int) -> None:
    rng = np.random.default_rng([46, seed])
    batch = [x for x in "bh" if rng.random() < 0.7]
    shared = [x for x in batch if rng.random() < 0.8]  # the others are rows alone
    sizes = {x: int(rng.choice(SIZES)) for x in (*batch, "m", "n")}
    sizes |= {"m": sizes["m"] + 4, "n": sizes["n"] + 4}
    sizes["k"] = int(rng.choice([7, 2100]))
    left, right = "".join((*batch, "mk")), "".join((*shared, "kn"))
    outer = "".join(rng.permutation([*batch, "m"]))  # vectors are written: n is last
    level = LEVELS[int(rng.integers(2))]
    ends = bool(rng.random() < 0.3)
    compare(f"{left},{right}->{outer}n", sizes, level, ends=ends)
