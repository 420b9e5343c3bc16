"""No kernel reads or writes a byte that is not its own, whatever its last dimension."""

from __future__ import annotations

from itertools import cycle
from pathlib import Path

import numpy as np
import pytest

import nanoloom
from nanoloom.cache import Cache
from nanoloom.target import Target, by_name
from nanoloom.target.host import host
from tests.drawn_cases import Asked
from tests.guarded import Side, in_child, run_guarded
from tests.vector.edges import (
    CASTS,
    PRODUCTS,
    Edges,
    convert,
    integers,
    is_wanted,
    multiply,
    run_edges,
)

# One more than vectors of any length fill, then all that a kind of rest begins with.
ONE_MORE = (17, 33, 1, 65, 49, 9, 129, 97, 5, 113, 81)
SOME = (2, 31, 63, 15, 50, 130, 3, 100, 23, 7, 72, 127, 36, 94, 59, 121, 16, 42, 11)


def here() -> list[Target]:
    """This CPU, and the levels below it."""
    levels = [by_name(f"x86-64-v{n}") for n in (4, 3, 2)]
    return [host(), *(level for level in levels if host().has(*level.extensions))]


def products(target: Target, every: bool) -> list[str]:
    """Each kind with a size of one of the rows, or of both, half of them with a packed
    weight."""
    edges, start = Edges(), 3 * here().index(target)
    sizes = zip(cycle(rotated(ONE_MORE, start)), cycle(rotated(SOME, start)))
    for number, (pair, kind) in enumerate(zip(sizes, PRODUCTS, strict=False)):
        for place, columns in enumerate(pair):
            if every or place == (number // 2 + start) % 2:
                multiply(edges, *kind, columns, flat=(number + place + start) % 2 == 0)
    return run_edges(edges, target)


def casts(target: Target) -> list[str]:
    edges = Edges()
    for kinds, columns in zip(CASTS, cycle(ONE_MORE + SOME), strict=False):
        convert(edges, *kinds, columns)
    return run_edges(edges, target)


def bytes_of_a_last_column(folder: Path) -> int:
    """How many of 100 calls with two threads differ from the exact product."""
    edges = Edges()
    x, w = integers((512, 64), 1), integers((64, 17), 2)
    left = edges.given("x", (x + 2).astype(np.uint8))
    right = edges.given("w", w.astype(np.int8), constant=True)
    one, zero, two = (
        edges.number(1, "f32"),
        edges.number(0, "i8"),
        edges.number(2, "u8"),
    )
    inputs = [left, one, two, right, one, zero, one, edges.number(100, "u8")]
    made = edges.add("QLinearMatMul", inputs)
    edges.wanted[made] = (x @ w + 100).clip(0, 255).astype(np.uint8)
    program = nanoloom.compile(edges.proto(), threads=2, cache=Cache(folder))
    sides = [Side.END, Side.START] * 50
    calls = [run_guarded(program, edges.inputs, side) for side in sides]
    return sum(not is_wanted(edges.wanted[made], call[made]) for call in calls)


def rotated(sizes: tuple[int, ...], start: int) -> tuple[int, ...]:
    return sizes[start % len(sizes) :] + sizes[: start % len(sizes)]


@pytest.mark.drawn(one_in=4, kind=lambda target: target.vector.bits)
@pytest.mark.parametrize("target", here(), ids=str)
def test_products(target: Target) -> None:
    assert in_child(products, target, Asked.all_cases) == []


def test_conversions() -> None:
    assert in_child(casts, host()) == []


def test_two_threads_and_a_column_too_many(tmp_path: Path) -> None:
    assert in_child(bytes_of_a_last_column, tmp_path) == 0
