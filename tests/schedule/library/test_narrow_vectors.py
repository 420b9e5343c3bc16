"""Vectors of a part of a register, where a product has few columns."""

from __future__ import annotations

import numpy as np
import pytest

from nanoloom.nest.nest import Buffer, LoopNest, Role
from nanoloom.nest.statement import AxisKind, Statement
from nanoloom.schedule.choose import choose
from nanoloom.schedule.language import Nanokernel
from nanoloom.schedule.library.narrow_vectors import targets
from nanoloom.target import by_name
from nanoloom.target.facts import Target
from tests.linalg.bounds import sample
from tests.linalg.single import run_node
from tests.nest.nests import MULTIPLY, access, axes

ZEN4 = by_name("znver4")


def groups(columns: int) -> LoopNest:
    """A convolution of 26 groups by 3x3, so many filters in each."""
    outer = axes(AxisKind.PARALLEL, y=14, x=14, g=26, f=columns)
    window = axes(AxisKind.REDUCTION, ky=3, kx=3, c=columns)
    product = Statement(
        "product",
        (*outer, *window),
        (
            access("image", "y+ky", "x+kx", "g", "c"),
            access("w", "g", "f", "c", "ky", "kx"),
        ),
        (access("made", "y", "x", "g", "f"),),
        ("0.0",),
        ("",),
        MULTIPLY,
    )
    buffers = (
        Buffer("image", (16, 16, 26, columns), "f32", Role.INPUT, 0),
        Buffer("w", (26, columns, columns, 3, 3), "f32", Role.CONSTANT, 1),
        Buffer("made", (14, 14, 26, columns), "f32", Role.RESULT, 2),
    )
    return LoopNest(buffers, (product,), ("made",))


def vectors(columns: int, target: Target = ZEN4) -> tuple[int, int]:
    """Vectors side by side in a tile, and the lanes of each."""
    words = choose(groups(columns), target).directives
    (tile,) = (word for word in words if isinstance(word, Nanokernel))
    return tile.vectors, tile.lanes.count


def test_half_a_register_holds_all_columns() -> None:
    """A core that multiplies as many halves as whole registers wins nothing."""
    assert vectors(8) == (1, 8)
    assert vectors(8, by_name("sapphirerapids")) == (1, 16)
    assert vectors(4, by_name("x86-64-v3")) == (1, 8)


def test_three_halves_take_less_than_two_registers() -> None:
    """On a core that takes two turns for a register; on others two are two."""
    assert vectors(24) == (3, 8)
    assert vectors(24, by_name("sapphirerapids")) == (2, 16)


@pytest.mark.parametrize(("columns", "lanes"), [(16, 16), (32, 16), (40, 8), (100, 8)])
def test_what_fills_no_whole_registers_has_parts(columns: int, lanes: int) -> None:
    assert vectors(columns)[1] == lanes


def test_vectors_of_any_width_have_no_parts() -> None:
    assert list(targets(2, 32, by_name("armv9-sve2"))) == [by_name("armv9-sve2")]
    assert [each.vector.bits for each in targets(2, 32, ZEN4)] == [512, 256, 128]


@pytest.mark.parametrize("columns", [3, 4, 8, 24])
def test_numbers(columns: int) -> None:
    x = sample(0, (1, 5 * columns, 9, 11), "float32")
    w = sample(1, (5 * columns, columns, 3, 3), "float32")
    (got,) = run_node("Conv", [x, w], constants=[1], group=5)
    windows = np.lib.stride_tricks.sliding_window_view(x[0], (3, 3), (1, 2))
    inside = windows.reshape(5, columns, 7, 9, 3, 3).astype(np.float64)
    filters = w.reshape(5, columns, columns, 3, 3)
    right = np.einsum("gcyxij,gfcij->gfyx", inside, filters).reshape(got.shape)
    room = np.einsum("gcyxij,gfcij->gfyx", abs(inside), abs(filters))
    bound = (9 * columns + 2) * np.finfo(np.float32).eps * room.reshape(got.shape)
    assert (abs(got - right) <= bound).all()
    assert (abs(right) > bound).any()
