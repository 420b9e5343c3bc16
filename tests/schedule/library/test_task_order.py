"""The order of a product's tasks: what a cache that is played through has to fetch."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest

from nanoloom.schedule.choose import choose
from nanoloom.schedule.language import Parallel
from nanoloom.schedule.library.task_order import traffic
from nanoloom.target import by_name
from nanoloom.target.facts import Target
from tests.linalg.bounds import sample, wide
from tests.schedule.library.test_image_rows import layer
from tests.vector.checks import check
from tests.vector.kernel_harness import run

V3 = by_name("x86-64-v3")


def with_cache(size: int) -> Target:
    return replace(V3, caches=replace(V3.caches, l2=size))


def first(high: int, wide: int, channels: int, features: int, cache: int) -> object:
    """The axis that changes most rarely, None for the order of the loops."""
    words = choose(layer(high, wide, channels, features), with_cache(cache)).directives
    (task,) = [word for word in words if isinstance(word, Parallel)]
    return task.slowest


def test_the_larger_operand_comes_once() -> None:
    """Loops go over rows of the image, then over panels of the weights."""
    image = 28, 28, 112  # 201 KB with its border, 14 rows in a task
    assert first(*image, 1024, 1 << 18) == 2  # 2 MB of weights would come twice
    assert first(*image, 1024, 1 << 17) is None  # the image would come for each panel
    assert first(*image, 1024, 1 << 22) is None  # all of it stays


def fetched(
    order: dict[int, int], operands: list[tuple[set[int], int]], cache: int
) -> int:
    """Bytes that a cache fetches that keeps what was read last (LRU)."""
    held: dict[tuple[Any, ...], int] = {}
    moved = 0
    for at in product(*(range(n) for n in order.values())):
        places = dict(zip(order, at, strict=True))
        for n, (axes, size) in enumerate(operands):
            part = size // prod(order[d] for d in order if d in axes)
            key = (n, *(places[d] for d in order if d in axes))
            moved += 0 if key in held else part
            held.pop(key, None)
            held[key] = part
            while sum(held.values()) > cache and len(held) > 1:
                held.pop(next(iter(held)))
    return moved


@pytest.mark.parametrize("seed", range(30))
def test_bytes_are_those_of_a_cache_that_is_played_through(seed: int) -> None:
    """Far from the size where an operand only just stays."""
    rng = np.random.default_rng([46, 20, seed])
    names = [int(d) for d in rng.permutation(3)]
    trips = {d: int(rng.integers(2, 6)) for d in names}
    axes = [{0, 2}, {1, 2}] if rng.random() < 0.5 else [{0, 2}, {1}]
    sizes = [int(1000 * rng.integers(1, 9)) * prod(trips.values()) for _ in axes]
    operands = list(zip(axes, sizes, strict=True))
    every = sum(sizes)
    assert traffic(trips, operands, 4 * every) == every
    assert fetched(trips, operands, 4 * every) == every
    tiny = 1  # a task's parts only stay while nothing else comes
    assert traffic(trips, operands, tiny) >= fetched(trips, operands, tiny) >= every


@pytest.mark.parametrize("seed", range(3))
def test_the_result_is_right_whichever_comes_first(seed: int) -> None:
    """Two axes of rows and panels of columns, of which nothing stays."""
    rng = np.random.default_rng([46, 21, seed])
    h, m, n, k = (int(x) for x in rng.integers(3, 40, 4))
    x, y = sample(0, (h, m, k), "float32"), sample(1, (k, n + 24), "float32")

    def make(b: Any, left: Any) -> Any:
        weights = b.constant(y)
        made = b.einsum("hmk,kn->hmn", left, weights)
        return b.elementwise(lambda s: s + s, made)

    exact = 2 * np.einsum("hmk,kn->hmn", wide(x), wide(y))
    size = 2 * np.einsum("hmk,kn->hmn", abs(wide(x)), abs(wide(y)))
    check(run(make, x, target=with_cache(2048)), exact, k, size)
