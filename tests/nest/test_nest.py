"""A nest draws itself, and knows who reads what."""

from __future__ import annotations

from nanoloom.nest.extent import Bounded, Lanes
from nanoloom.nest.footprint import footprint
from nanoloom.nest.index import Index
from tests.nest.nests import convolution, matmul


def test_it_is_drawn_as_people_draw_loops() -> None:
    assert str(convolution()).splitlines()[-13:] == [
        "for n in 0..5:",
        "  for y in 0..80:",
        "    for x in 0..100:",
        "      for c in 0..128:",
        "        for rz in 0..3 (sum):",
        "          for ry in 0..3 (sum):",
        "            for rx in 0..128 (sum):",
        "              conv: conv[n, y, x, c] <- filter[rx, rz, ry, c], "
        "input[n, y + rz, x + ry, rx]",
        "for n in 0..5:",
        "  for y in 0..80:",
        "    for x in 0..100:",
        "      for c in 0..128:",
        "        relu: relu[n, y, x, c] <- conv[n, y, x, c]",
    ]


def test_what_a_sum_begins_with_is_made_before_it() -> None:
    nest = matmul()
    assert [s.name for s in nest.producers("product")] == ["fill"]
    assert [s.name for s in nest.upstream("point")] == ["fill", "product"]
    assert nest.upstream("fill") == ()


def test_a_window_reaches_over_more_than_its_results() -> None:
    """2*i + r with 8 results of 3 taps: 0 to 16."""
    index = Index((("i", 2), ("r", 1)))
    assert footprint(index, {"i": 8, "r": 3}, 100) == 17
    assert footprint(index, {"i": 8, "r": 3}, 12) == 12
    assert footprint(Index((("i", -1),), 7), {"i": 8}, 100) == 8


def test_a_size_that_is_not_known_takes_all() -> None:
    index, most = Index((("i", 1),)), Bounded("tokens", 128)
    assert footprint(index, {"i": most}, 128) == 128
    assert footprint(index, {"i": 4}, most) == most
    assert footprint(Index((("i", 0),), 0, "i floordiv 2"), {"i": 4}, 9) == 9


def test_values_compare_and_hash() -> None:
    assert matmul() == matmul()
    assert hash(matmul()) == hash(matmul())
    assert matmul() != matmul(65)
    assert (str(Lanes(4)), str(Lanes(4, scalable=True))) == ("4", "[4]")
