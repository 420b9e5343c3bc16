"""How many rows of an image are a task's, on a matrix unit and elsewhere."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nanoloom.nest.nest import Buffer, LoopNest, Role
from nanoloom.nest.statement import AxisKind, Statement
from nanoloom.schedule.choose import choose
from nanoloom.schedule.language import Parallel, Prefetch, Tile
from nanoloom.target import by_name
from nanoloom.target.facts import Target
from tests.nest.nests import MULTIPLY, access, axes

WITH_TILES, WITHOUT = by_name("sapphirerapids"), by_name("znver4")


def layer(high: int, wide: int, channels: int, features: int) -> LoopNest:
    """A convolution by 3x3 in bf16, its border there already."""
    outer = axes(AxisKind.PARALLEL, y=high, x=wide, f=features)
    window = axes(AxisKind.REDUCTION, ky=3, kx=3, c=channels)
    reads = access("image", "y+ky", "x+kx", "c"), access("w", "f", "ky", "kx", "c")
    product = Statement(
        "product",
        (*outer, *window),
        tuple(replace(read, element="bf16") for read in reads),
        (access("made", "y", "x", "f"),),
        ("0.0",),
        ("",),
        MULTIPLY,
    )
    buffers = (
        Buffer("image", (high + 2, wide + 2, channels), "bf16", Role.INPUT, 0),
        Buffer("w", (features, 3, 3, channels), "bf16", Role.CONSTANT, 1),
        Buffer("made", (high, wide, features), "f32", Role.RESULT, 2),
    )
    return LoopNest(buffers, (product,), ("made",))


def rows(nest: LoopNest, target: Target = WITH_TILES) -> tuple[int, int]:
    """Rows of an image in a task (0 for all), and in a tile (0 where none is cut)."""
    words = choose(nest, target).directives
    (task,) = [word.sizes[0] for word in words if isinstance(word, Parallel)]
    tiles = [word.sizes[0] for word in words if isinstance(word, Tile)]
    return task, tiles[0] if tiles else 0


def test_weights_larger_than_the_cache_come_once() -> None:
    """4.7 MB; a row that fits no register is a tile of its own."""
    assert rows(layer(28, 28, 512, 512)) == (28, 1)
    assert rows(layer(20, 20, 512, 512)) == (20, 1)


@pytest.mark.parametrize("high, wide", [(7, 7), (14, 14), (8, 16)])
def test_rows_that_fit_a_register_are_taken_by_twos(high: int, wide: int) -> None:
    assert rows(layer(high, wide, 512, 512)) == (high, 0)


def test_small_weights_leave_some_tasks() -> None:
    assert rows(layer(14, 14, 64, 64)) == (2, 0)
    assert rows(layer(14, 14, 64, 512)) == (14, 0)
    assert rows(layer(56, 56, 64, 64)) == (1, 0)


def test_what_reaches_over_an_edge_has_one_row() -> None:
    """Columns that are no whole tile, sums that are no whole step."""
    assert rows(layer(14, 14, 64, 40)) == (1, 0)
    assert rows(layer(14, 14, 40, 64)) == (1, 0)
    assert rows(layer(7, 7, 520, 520)) == (7, 1)


def test_vectors_share_panels_of_large_weights_alone() -> None:
    assert rows(layer(7, 7, 512, 512), WITHOUT) == (7, 1)
    assert rows(layer(14, 14, 64, 64), WITHOUT)[0] == 1
    assert rows(layer(56, 56, 64, 64), WITHOUT)[0] == 1


@pytest.mark.parametrize("high, wide", [(7, 7), (14, 14), (3, 16)])
def test_several_pairs_of_rows_fetch_the_next_panel(high: int, wide: int) -> None:
    """Each of them reads the whole panel: only the first would wait for it."""
    words = choose(layer(high, wide, 512, 512), WITH_TILES).directives
    (fetched,) = (word for word in words if isinstance(word, Prefetch))
    assert (fetched.loops, fetched.lines, fetched.level) == (("product.x",), 8, 2)


@pytest.mark.parametrize("high, wide", [(7, 7), (14, 14)])
def test_several_rows_in_vectors_fetch_the_next_panel(high: int, wide: int) -> None:
    """A row is one tile: the loop over its tiles is gone, that over rows reads one."""
    words = choose(layer(high, wide, 512, 512), WITHOUT).directives
    (fetched,) = (word for word in words if isinstance(word, Prefetch))
    assert (fetched.loops, fetched.lines, fetched.level) == (("product.yo2",), 8, 2)


def test_a_single_pair_reads_its_panel_once() -> None:
    words = choose(layer(14, 14, 64, 64), WITH_TILES).directives
    (fetched,) = (word for word in words if isinstance(word, Prefetch))
    assert (fetched.loops, fetched.ahead, fetched.level) == ((), 64, 1)
