"""Guards and partitions against what each single step says."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nanoloom.nest.guard import Guard, Partition

SMALL = st.integers(0, 12)
COUNT = st.integers(1, 5)


@given(st.integers(-12, 12), COUNT, SMALL, st.integers(0, 6), SMALL)
def test_steps(begin: int, step: int, size: int, reach: int, extent: int) -> None:
    """Those whose first place and whose last one are within."""
    found = Guard(begin, step, size, reach).steps(extent)
    places = [begin + step * n for n in range(extent)]
    within = [n for n, at in enumerate(places) if at >= 0 and at + reach < size]
    assert list(found) == within
    assert 0 <= found.start <= extent and 0 <= found.stop <= extent


@given(SMALL, SMALL, SMALL, COUNT, st.booleans())
def test_blocks(one: int, other: int, extent: int, count: int, whole: bool) -> None:
    """Each is in one part, in order; the steady state's have all steps within."""
    inside = range(min(one, extent), min(other, extent))
    made = Partition.of(inside, extent, count, whole=whole)
    blocks = [range(extent)[at : at + count] for at in range(0, extent, count)]
    steady = [block for block in blocks if all(n in inside for n in block)]
    steady = [block for block in steady if not whole or len(block) == count]
    assert list(made.steady) == [block.start for block in steady]
    whole = [*made.prologue, *made.steady, *made.epilogue]
    assert whole == [block.start for block in blocks]
    assert made.ends == [at for at in whole if at not in made.steady]
