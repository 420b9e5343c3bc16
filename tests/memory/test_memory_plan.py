"""The arena: two buffers that live at the same time never share a byte."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from nanoloom.memory.memory_plan import ALIGNMENT, Lifetime, plan_memory, rounded


@st.composite
def lifetimes(draw: st.DrawFn) -> Lifetime:
    first = draw(st.integers(0, 20))
    size = draw(st.sampled_from([0, 1, 63, 64, 65, 100, 4096, 100_000]))
    return Lifetime(size, first, first + draw(st.integers(0, 10)))


def meet(one: Lifetime, other: Lifetime) -> bool:
    return one.first <= other.last and other.first <= one.last


def overlap(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def conflicts(buffers: list[Lifetime], offsets: list[int]) -> list[tuple[int, int]]:
    """Pairs of buffers that live together in the same bytes."""
    spans = [(o, o + b.size) for o, b in zip(offsets, buffers, strict=True)]
    return [
        (i, j)
        for i in range(len(buffers))
        for j in range(i)
        if meet(buffers[i], buffers[j]) and overlap(spans[i], spans[j])
    ]


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.lists(lifetimes(), max_size=25))
@example([])
@example([Lifetime(64, 0, 1), Lifetime(64, 1, 2)])  # written while the other is read
def test_live_buffers_do_not_overlap(buffers: list[Lifetime]) -> None:
    offsets, total = plan_memory(buffers)
    assert conflicts(buffers, offsets) == []
    assert all(offset % ALIGNMENT == 0 for offset in offsets)
    ends = [o + b.size for o, b in zip(offsets, buffers, strict=True)]
    assert all(end <= total for end in ends)
    assert total <= sum(rounded(b.size) for b in buffers)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(lifetimes(), min_size=1, max_size=25))
def test_no_arena_is_smaller_than_what_lives_at_once(buffers: list[Lifetime]) -> None:
    _, total = plan_memory(buffers)
    for step in range(31):
        alive = [rounded(b.size) for b in buffers if b.first <= step <= b.last]
        assert sum(alive) <= total


def test_dead_buffers_give_their_place_to_others() -> None:
    chain = [Lifetime(1000, i, i + 1) for i in range(10)]
    _, total = plan_memory(chain)
    assert total == 2 * rounded(1000)


def test_a_plan_with_a_conflict_would_be_found() -> None:
    buffers = [Lifetime(64, 0, 3), Lifetime(64, 2, 5), Lifetime(64, 4, 6)]
    assert conflicts(buffers, [0, 0, 0]) == [(1, 0), (2, 1)]
    assert conflicts(buffers, [0, 63, 0]) == [(1, 0), (2, 1)]
    assert conflicts(buffers, [0, 64, 0]) == []
