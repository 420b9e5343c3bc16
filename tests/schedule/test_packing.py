"""Packed weights: every element in its place, zeros at the edges."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nanoloom.schedule.packing import Packing

small = st.integers(1, 9)


def element(packing: Packing, packed: np.ndarray, place: dict[int, int]) -> float:
    """What stands for logical[place], found as the nanokernel finds it."""
    column, last = place[packing.column], place[packing.reduced[-1]]
    panel, lane = divmod(column, packing.columns)
    step, part = divmod(last, packing.group)
    at = [place[d] for d in packing.shared] + [panel]
    at += [place[d] for d in packing.reduced[:-1]]
    at += [step, lane * packing.group + part]
    return float(packed[tuple(at)])


FORMS = [
    Packing(1, (), 1, (0,), 4),
    Packing(1, (), 0, (1,), 4),
    Packing(1, (0,), 2, (1,), 4),
    Packing(1, (), 3, (0, 1, 2), 5),
    Packing(1, (), 1, (0,), 4, 2),
    Packing(1, (1,), 0, (2,), 3, 4),
]


@pytest.mark.parametrize("packing", FORMS, ids=str)
@settings(max_examples=10, deadline=None, derandomize=True)
@given(sizes=st.tuples(small, small, small, small))
def test_every_element_is_in_its_place(
    packing: Packing, sizes: tuple[int, ...]
) -> None:
    rank = len(packing.shared) + 1 + len(packing.reduced)
    shape = sizes[:rank]
    logical = 1 + np.arange(np.prod(shape), dtype=np.float64).reshape(shape)
    packed = packing.pack(logical)
    assert packed.shape == packing.shape(shape)
    assert packed.flags.c_contiguous
    for place in np.ndindex(*shape):
        assert element(packing, packed, dict(enumerate(place))) == logical[place]
    rest = np.count_nonzero(packed == 0)
    assert packed.size - rest == logical.size  # nothing twice, zeros everywhere else


def test_the_element_type_is_kept() -> None:
    packing = Packing(0, (), 1, (0,), 4)
    for name in ("float32", "float64", "int8"):
        assert packing.pack(np.ones((3, 5), name)).dtype == np.dtype(name)


def test_the_weight_is_not_changed() -> None:
    logical = np.arange(15.0).reshape(3, 5)
    logical.flags.writeable = False  # as weights are that lie in a file
    packed = Packing(0, (), 1, (0,), 4).pack(logical)
    assert packed[1, :, 0].tolist() == [4, 9, 14]
