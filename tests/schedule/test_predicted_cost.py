"""What loops are predicted to cost: which of two schedules is the cheaper one."""

from __future__ import annotations

import pytest

from nanoloom.nest.extent import Lanes
from nanoloom.schedule.language import (
    ComputeAt,
    Directive,
    Schedule,
    UnrollAndJam,
    Vectorize,
)
from nanoloom.schedule.predicted_cost import predicted
from nanoloom.target import by_name
from tests.nest.nests import convolution, matmul
from tests.notation.programs import kernels, stencil

TARGET = by_name("x86-64-v3")
LANES = Lanes(TARGET.lanes(32))
VECTORS = Vectorize("product", "j", LANES), Vectorize("point", "j", LANES)


def cost(*words: Directive) -> float:
    """Of a product of 64 x 48 x 40, its fill with vectors."""
    all_ = Vectorize("fill", "j", LANES), *words
    return predicted(Schedule(all_).apply(matmul()), TARGET)


def tile(rows: int, vectors: int) -> float:
    points = UnrollAndJam("product", "i", rows), UnrollAndJam("product", "j", vectors)
    return cost(*VECTORS, *points)


def test_plain_loops_cost_the_lanes_that_they_leave_unused() -> None:
    assert cost() > 5 * cost(*VECTORS)


def test_points_side_by_side_hide_each_others_latency() -> None:
    assert tile(1, 1) > 2 * tile(4, 1) > 2 * tile(6, 2)
    assert tile(6, 2) == pytest.approx(1, abs=0.1)


def test_more_sums_than_registers_are_spilled() -> None:
    assert tile(12, 2) > 1.3 * tile(6, 2)


def test_vectors_that_do_not_divide_an_axis_are_not_full() -> None:
    wide = Vectorize("point", "j", Lanes(64))
    assert cost(*VECTORS[:1], wide) > cost(*VECTORS)


def test_what_points_share_is_loaded_once() -> None:
    """Two rows of windows share two of three rows that they read."""
    (kernel,) = kernels(stencil()).kernels.values()

    def planes(count: int) -> float:
        words = Vectorize("b", "k", LANES), UnrollAndJam("b", "i", count)
        return predicted(Schedule(words).apply(kernel.nest), TARGET)

    assert planes(1) >= planes(4)


def test_every_number_is_read_once_at_least() -> None:
    words = Vectorize("conv", "c", LANES), Vectorize("relu", "c", LANES)
    tiled = *words, UnrollAndJam("conv", "x", 6), UnrollAndJam("conv", "c", 2)
    nest = convolution()
    assert predicted(Schedule(tiled).apply(nest), TARGET) < predicted(
        Schedule(words).apply(nest), TARGET
    )


def test_what_is_computed_at_a_tile_is_neither_stored_nor_loaded() -> None:
    """A sum of one step: to store it takes longer than to compute it."""

    def all_points(stage: str) -> tuple[Directive, ...]:
        return Vectorize(stage, "j", LANES), UnrollAndJam(stage, "i", 10)

    def of(*words: Directive) -> float:
        return predicted(Schedule(words).apply(matmul(64, 1, 40)), TARGET)

    inside = ComputeAt("product", "point", "j"), ComputeAt("fill", "point", "j")
    stages = *all_points("product"), *all_points("fill")
    apart = of(*all_points("point"), *stages)
    assert of(*all_points("point"), *inside, *stages) < 0.9 * apart
