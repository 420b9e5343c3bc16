"""Bytes that a nest moves at each level, against numbers found by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nanoloom.cost.estimate import Estimate, estimate
from nanoloom.nest.fusion import fusion
from nanoloom.nest.nest import LoopNest
from nanoloom.schedule.language import Reorder, Schedule, Split
from nanoloom.target import Target, by_name
from nanoloom.target.facts import Cache
from tests.nest.nests import matmul, windows

M, K, N = 64, 48, 40


def with_caches(*sizes: int) -> Target:
    return replace(by_name("x86-64-v3"), caches=Cache(*sizes))


def made(nest: LoopNest, *sizes: int) -> Estimate:
    return estimate(nest, (), with_caches(*sizes))


def test_all_fits() -> None:
    """Each byte comes once: x, w, the result; what is between stays where it is."""
    found = made(matmul(M, K, N), 1 << 20, 1 << 21)
    assert found.points == M * K * N + M * N and not found.recomputed
    once = 4 * (M * K + K * N + M * N)
    assert {x.moved for x in found.levels} == {once}
    assert [x.name for x in found.levels] == ["l1", "l2"]


def test_nothing_fits_but_a_row() -> None:
    """i outside: w comes anew for each of its rows, x and the product once."""
    row = 4 * (K + K * N + 2 * N)
    found = made(matmul(M, K, N), row, 1 << 20)
    product = 4 * (M * K + K * N + 2 * M * N)  # w stays over i
    assert found.moved("l1") == product + 4 * 2 * M * N
    less = made(matmul(M, K, N), row - 1, 1 << 20)  # i, then j: columns of w
    assert less.moved("l1") == 4 * (M * K + M * K * N + 2 * M * N) + 4 * 2 * M * N
    assert less.levels[0].working_set <= row - 1


def test_blocks_move_less() -> None:
    """Tiles of 16 x 8: w comes 64/16 times, x 40/8 times."""
    words = (
        Split("product", "i", "io", "ii", 16),
        Split("product", "j", "jo", "ji", 8),
        Reorder("product", ("io", "jo", "ii", "ji")),
    )
    nest = Schedule(words).apply(matmul(M, K, N))
    tile = 4 * (16 * K + K * 8 + 2 * 16 * 8)
    found = made(nest, tile, 1 << 20)
    of_w = 4 * K * N * (M // 16)
    of_x = 4 * M * K  # it stays over jo
    assert found.moved("l1") == of_x + of_w + 4 * 2 * M * N + 4 * 2 * M * N
    assert found.moved("l1") < made(matmul(M, K, N), tile, 1 << 20).moved("l1")


@pytest.mark.parametrize("capacity", [64, 512, 4096, 1 << 20])
def test_larger_caches_move_no_more(capacity: int) -> None:
    for nest in (matmul(M, K, N), windows(16, 12)):
        small, large = (made(nest, capacity * n, 1 << 22).moved("l1") for n in (1, 2))
        assert small >= large


def test_a_fusion_saves_what_it_keeps_in_the_cache() -> None:
    """p's blocks of 2 rows read 5 of b, one of which the next block makes again."""
    nest = Schedule((Split("p", "i", "io", "ii", 2),)).apply(windows(6, 5))
    plan = (fusion(nest, "b", "p", "io"),)
    target = with_caches(512, 1 << 20)
    apart, joined = estimate(nest, (), target), estimate(nest, plan, target)
    assert joined.recomputed == plan[0].recompute == 2 * 11
    assert joined.points == apart.points + 2 * 11
    between = 4 * 13 * 11
    assert 4 * 5 * 11 <= 512 < between
    assert apart.moved("l1") - joined.moved("l1") >= between
    tiny = with_caches(4 * 5 * 11 - 4, 1 << 20)
    assert estimate(nest, plan, tiny).moved("l1") > joined.moved("l1")
