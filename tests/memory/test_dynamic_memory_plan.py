"""Slots of the arena: buffers that are alive at once have different ones."""

from __future__ import annotations

from nanoloom.memory.calls import Call, Place, Repeated, Storage
from nanoloom.memory.dynamic_memory_plan import slots_of


def call(*buffers: int) -> Call:
    return Call("k", tuple(Place(Storage.ARENA, i) for i in buffers), "")


def slots(sizes: tuple[int, ...], *calls: Call) -> list[list[int]]:
    return slots_of(calls, (), sizes, set())


def test_one_behind_the_other() -> None:
    """0 -> 1 -> 2 -> 3: two slots are enough."""
    made = slots((10, 20, 30, 5), call(0, 1), call(1, 2), call(2, 3))
    assert sorted(map(sorted, made)) == [[0, 2], [1, 3]]


def test_what_lives_long() -> None:
    made = slots((10, 20, 30), call(0, 1), call(1, 2), call(0, 2))
    assert sorted(map(sorted, made)) == [[0], [1], [2]]


def test_large_ones_first() -> None:
    made = slots((1, 100, 50, 2), call(0), call(1), call(2), call(3))
    assert made == [[1, 2, 3, 0]]


def test_what_repeats_use_lives_in_all_trips() -> None:
    """0 -> 1 -> 2, again and again: the last trip's 0 is not the first one's 2."""
    calls = call(0, 1), call(1, 2), call(3)
    repeats = (Repeated(0, 2, 5),)
    made = slots_of(calls, repeats, (9, 9, 9, 9), set())
    assert sorted(map(sorted, made)) == [[0, 3], [1], [2]]
