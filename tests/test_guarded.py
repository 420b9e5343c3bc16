"""The guards themselves: a byte too far on either side ends a child, not the tests."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from tests.guarded import PAGE, Guarded, Side, in_child


def write_at(side: Side, offset: int) -> bool:
    """Write one byte so far behind the array's first; whether the rest is intact."""
    guarded = Guarded((3, 7), np.dtype(np.int16), side)
    ctypes.memset(guarded.address + offset, 0, 1)
    return guarded.is_rest_intact()


@pytest.mark.parametrize(("side", "offset"), [(Side.END, 42), (Side.START, -1)])
def test_a_byte_too_far_is_a_signal(side: Side, offset: int) -> None:
    with pytest.raises(AssertionError, match="write_at ended with SIGSEGV"):
        in_child(write_at, side, offset)


@pytest.mark.parametrize(("side", "offset"), [(Side.END, -1), (Side.START, 42)])
def test_a_byte_on_the_other_side_is_seen(side: Side, offset: int) -> None:
    assert not write_at(side, offset)
    assert write_at(side, 41)


@pytest.mark.parametrize("size", [0, 1, PAGE, PAGE + 1])
@pytest.mark.parametrize("side", Side)
def test_arrays_of_any_size(side: Side, size: int) -> None:
    array = np.arange(size).astype(np.uint8)
    guarded = Guarded.of(array, side)
    np.testing.assert_array_equal(guarded.array, array)
    assert guarded.is_rest_intact()


def fail(what: str) -> None:
    raise ValueError(what)


def test_a_child_raises_here() -> None:
    with pytest.raises(ValueError, match="at fault"):
        in_child(fail, "at fault")
