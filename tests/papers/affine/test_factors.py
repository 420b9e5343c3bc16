"""How far loops are unrolled on each kind of machine."""

from __future__ import annotations

from nanoloom.target import by_name
from nanoloom_papers.affine.factors import Factors
from nanoloom_papers.affine.strategies import AS_IT_LIKES, Unrolling


def test_groups_of_registers_take_long_sums() -> None:
    """Four registers of RVV are one instruction: fewer sums beside each other."""
    found = Factors.of(by_name("rv64gcv-zvl512b"), AS_IT_LIKES)
    assert (found.lanes, found.k, found.sum_tile) == (16, 4, (2, 2))
    rows, columns = found.sum_tile  # their sums, the rows and one column at a time
    assert found.k * (rows * columns + rows + 1) <= 32
    assert Factors.of(by_name("x86-64-v3"), AS_IT_LIKES).k == 1


def test_what_is_asked_for_comes_first() -> None:
    found = Factors.of(by_name("rv64gcv-zvl512b"), Unrolling(8, 2, 3, 4))
    assert (found.lanes, found.k, found.sum_tile) == (8, 2, (3, 4))


def test_columns_in_memory_are_single_vectors() -> None:
    """As in the paper's Figure 2, whatever the registers."""
    for name in ("rv64gcv-zvl512b", "x86-64-v3", "sapphirerapids"):
        found = Factors.of(by_name(name), AS_IT_LIKES)
        assert found.memory_tile == (4, 1)
