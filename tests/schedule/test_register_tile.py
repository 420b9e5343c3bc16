"""The register tile: what fits into the registers and wastes the least."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nanoloom.nest.granularity import BLOCK_ROWS
from nanoloom.schedule.register_tile import (
    ALIKE,
    as_of_many_rows,
    asked,
    candidates,
    choose,
    cost,
    ranked,
    swapped,
)
from nanoloom.schedule.step_cost import FMA
from nanoloom.target import TARGETS, Target, by_name
from nanoloom.target.facts import ADDRESSES

UNIT = by_name("sapphirerapids").vector
units = st.sampled_from(sorted(TARGETS, key=str)).map(lambda target: target.vector)


@pytest.mark.parametrize("registers", [16, 32])
def test_candidates_leave_room_for_operands(registers: int) -> None:
    """Accumulators, one row of the right operand, one broadcast."""
    found = candidates(registers, dataclasses.replace(FMA, swaps=False))
    assert found
    assert all(r * v + v + 1 <= registers for r, v in found)
    assert not any(swapped(r, v, registers) for r, v in found)
    assert (6, 4) in candidates(32)
    assert (6, 2) in candidates(16)
    assert (6, 4) not in candidates(16)


def test_swapped_roles_let_low_tiles_be_wider() -> None:
    """All rows broadcast and one load (paper, Fig. 2a) where that saves the spill."""
    more = {(r, v) for r, v in candidates(16) if swapped(r, v, 16)}
    assert more == {(1, 8), (2, 6), (3, 4)}
    assert {(r, v) for r, v in candidates(32) if swapped(r, v, 32)} == {(3, 8)}
    unit = by_name("x86-64-v3").vector
    for rows, vectors in more:
        tile = choose(rows, 8 * vectors * 12, 32, unit)
        assert (tile.rows, tile.vectors) == (rows, vectors)
        assert str(tile).endswith("columns loaded one by one")
    assert not swapped(*candidates(32)[0], 32)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(m=st.integers(1, 600), n=st.integers(1, 4000), unit=units)
def test_the_choice_fits_and_none_is_cheaper(m: int, n: int, unit: object) -> None:
    tile = choose(m, n, 32, unit)  # type: ignore[arg-type]
    rows, vectors = tile.rows, tile.vectors
    registers = unit.registers  # type: ignore[attr-defined]
    lanes = max(1, unit.bits // 32)  # type: ignore[attr-defined]
    assert rows >= 1
    assert vectors >= 1
    assert rows * vectors + min(rows, vectors) + 1 <= registers
    best = min(
        cost(r, v, m, n, lanes, unit) * asked(n, v * lanes, unit)  # type: ignore[arg-type]
        for r, v in candidates(registers)
        if r <= ADDRESSES // 2 or m % r == 0
    )
    assert tile.cost <= best + 1e-3
    once = cost(rows, vectors, m, n, lanes, unit)  # type: ignore[arg-type]
    assert tile.cost == once * asked(n, vectors * lanes, unit)  # type: ignore[arg-type]


def test_a_single_panel_whose_edge_is_known_beats_two() -> None:
    """31 columns are four vectors: stores of two panels would ask each time."""
    unit = by_name("x86-64-v3").vector
    assert asked(31, 16, unit) > 1
    assert asked(31, 32, unit) == asked(32, 16, unit) == 1
    assert asked(31, 16, by_name("x86-64-v4").vector) == 1
    tile = choose(65, 31, 32, unit)
    assert (tile.rows, tile.vectors) == (3, 4)


def test_masks_take_registers_where_a_tile_reaches_over_the_edge() -> None:
    unit, step = by_name("x86-64-v3").vector, dataclasses.replace(FMA, masks=1)
    tile = choose(127, 517, 32, unit, step)
    assert (tile.rows + 2) * tile.vectors + 1 <= unit.registers
    assert (6, 2) in candidates(16, step, 512, 8)
    assert (6, 2) not in candidates(16, step, 517, 8)
    assert choose(96, 768, 32, unit, step) == choose(96, 768, 32, unit)


def test_vectors_that_are_read_together() -> None:
    """A multiple of them, and no more columns than the result has: none is masked."""
    step = dataclasses.replace(FMA, together=2, swaps=False)
    for columns, widest in ((64, 6), (47, 4), (16, 2)):
        found = {vectors for _, vectors in candidates(16, step, columns, 8)}
        assert found == set(range(2, widest + 1, 2)), columns
    assert candidates(16, step, 15, 8) == []


def test_shifts_take_the_place_of_multiply_adds() -> None:
    """Where more is done beside them: 12 and one for each of two vectors."""
    unit = by_name("x86-64-v3").vector
    plain, shifted = (
        cost(6, 2, 96, 768, 8, unit, dataclasses.replace(FMA, shifts=shifts))
        for shifts in (0, 1)
    )
    assert shifted - plain == pytest.approx((14 - 12) / 12)


@pytest.mark.parametrize(
    ("name", "accumulators"),
    [("x86-64-v3", 12), ("sapphirerapids", 24), ("neoverse-v1", 24)],
)
def test_large_products_reach_the_peak(name: str, accumulators: int) -> None:
    tile = choose(96, 768, 32, by_name(name).vector)
    assert tile.rows * tile.vectors == accumulators
    assert tile.cost < 1.4  # the loads beside the multiply-adds included


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_rows_over_the_edge_are_few(target: Target) -> None:
    """Each needs an address of its own: too many would be kept on the stack."""
    for m in (17, 97, 127, 230):
        tile = choose(m, 65, 32, target.vector)
        assert m % tile.rows == 0 or tile.rows <= ADDRESSES // 2


def test_a_single_row_takes_wide_tiles() -> None:
    """One row cannot share the right operand: more chains hide the latency."""
    tile = choose(1, 4096, 32, UNIT)
    assert tile.rows == 1
    assert tile.vectors == 8


@pytest.mark.parametrize(
    ("columns", "vectors"), [(400, 5), (800, 5), (2048, 8), (50257, 8)]
)
def test_a_single_row_wastes_few_bytes(columns: int, vectors: int) -> None:
    """Weights of 400 columns in panels of 112 would be 12 % more to read."""
    tile = choose(1, columns, 32, UNIT)
    assert (tile.rows, tile.vectors) == (1, vectors)


def test_doubles_halve_the_lanes() -> None:
    assert choose(96, 32, 64, UNIT).vectors * 8 <= 32 + 8
    assert cost(6, 4, 96, 64, 8, UNIT) == pytest.approx(cost(6, 4, 96, 128, 16, UNIT))


def test_waste_at_the_edge_costs() -> None:
    full, over = (cost(6, 4, m, 64, 16, UNIT) for m in (6, 7))
    assert over > 1.7 * full


def test_a_version_for_the_last_rows_costs_what_they_take() -> None:
    """Seven rows in threes: a tile of one row waits for its own sums, no longer."""
    unit = by_name("x86-64-v3").vector
    all_rows, its_own = (
        cost(3, 4, 7, 32, 8, unit, versions=versions) for versions in (False, True)
    )
    whole, alone = (cost(rows, 4, rows, 32, 8, unit) * rows for rows in (3, 1))
    assert all_rows == pytest.approx(3 * whole / 7)
    assert its_own == pytest.approx((2 * whole + alone) / 7)
    assert its_own < all_rows


def test_latency_limits_small_tiles() -> None:
    slow = dataclasses.replace(UNIT, fma_latency=40)
    assert cost(1, 1, 1, 16, 16, slow) > 9 * cost(1, 1, 1, 16, 16, UNIT)


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 100, 128])
def test_panels_of_few_rows_are_those_of_many(rows: int) -> None:
    """One array of weights for all programs, but where it would cost something."""
    unit = by_name("znver4").vector
    many = choose(4 * BLOCK_ROWS - 1, 768, 32, unit)
    first, *others = as_of_many_rows(rows, 768, 32, unit)
    best = choose(rows, 768, 32, unit)
    assert first.vectors == many.vectors
    assert first.cost <= ALIKE * best.cost
    assert {first, *others} == {*ranked(rows, 768, 32, unit)}


@pytest.mark.parametrize(("target", "rows"), [("x86-64-v3", 1), ("sapphirerapids", 33)])
def test_panels_of_their_own_where_they_are_faster(target: str, rows: int) -> None:
    unit = by_name(target).vector
    assert as_of_many_rows(rows, 768, 32, unit) == ranked(rows, 768, 32, unit)
    many = choose(4 * BLOCK_ROWS - 1, 768, 32, unit)
    assert choose(rows, 768, 32, unit).vectors != many.vectors
