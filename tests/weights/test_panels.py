"""Packed weights: every element in its place, zeros at the edges."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nanoloom.weights.panels import Panels

small = st.integers(1, 9)


def element(panels: Panels, packed: np.ndarray, place: dict[int, int]) -> float:
    """What stands for logical[place], found as the nanokernel finds it."""
    column, last = place[panels.column], place[panels.reduced[-1]]
    panel, lane = divmod(column, panels.columns)
    step, part = divmod(last, panels.group)
    at = [place[d] for d in panels.shared] + [panel]
    at += [place[d] for d in panels.reduced[:-1]]
    at += [step, lane * panels.group + part]
    return float(packed[tuple(at)])


FORMS = [
    Panels((), 1, (0,), 4),
    Panels((), 0, (1,), 4),
    Panels((0,), 2, (1,), 4),
    Panels((), 3, (0, 1, 2), 5),
    Panels((), 1, (0,), 4, 2),
    Panels((1,), 0, (2,), 3, 4),
]


@pytest.mark.parametrize("panels", FORMS, ids=str)
@settings(max_examples=10, deadline=None, derandomize=True)
@given(sizes=st.tuples(small, small, small, small))
def test_every_element_is_in_its_place(panels: Panels, sizes: tuple[int, ...]) -> None:
    rank = len(panels.shared) + 1 + len(panels.reduced)
    shape = sizes[:rank]
    logical = 1 + np.arange(np.prod(shape), dtype=np.float64).reshape(shape)
    packed = panels.of(logical)
    assert packed.shape == panels.shape(shape)
    assert packed.flags.c_contiguous
    for place in np.ndindex(*shape):
        assert element(panels, packed, dict(enumerate(place))) == logical[place]
    rest = np.count_nonzero(packed == 0)
    assert packed.size - rest == logical.size  # nothing twice, zeros everywhere else


@pytest.mark.parametrize("name", ["int8", "uint8"])
def test_bytes_become_wide(name: str) -> None:
    logical = np.arange(-128, 128).astype(name).reshape(32, 8)
    panels = Panels((), 1, (0,), 4, 2)
    wide = replace(panels, bits=16)
    assert wide.of(logical).dtype == wide.dtype(logical.dtype) == np.int16
    np.testing.assert_array_equal(wide.of(logical), panels.of(logical))
    assert wide.of(logical).max() == np.iinfo(name).max


def test_the_element_type_is_kept() -> None:
    panels = Panels((), 1, (0,), 4)
    for name in ("float32", "float64", "int8"):
        assert panels.of(np.ones((3, 5), name)).dtype == np.dtype(name)


def test_the_weight_is_not_changed() -> None:
    logical = np.arange(15.0).reshape(3, 5)
    logical.flags.writeable = False  # as weights are that lie in a file
    packed = Panels((), 1, (0,), 4).of(logical)
    assert packed[1, :, 0].tolist() == [4, 9, 14]
