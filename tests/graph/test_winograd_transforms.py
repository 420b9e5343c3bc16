"""The matrices of Winograd's method are those of a convolution."""

from __future__ import annotations

import numpy as np
import pytest

from nanoloom.graph.winograd import MOST_GROWTH
from nanoloom.graph.winograd_transforms import (
    Filtering,
    integer_transforms,
    transforms,
)

EVERY = [
    axis
    for tile in (2, 3, 4)
    for taps in range(2, 8)
    for stride in (1, 2)
    if (axis := Filtering(tile, taps, stride)).is_known
]


@pytest.mark.parametrize("axis", EVERY, ids=str)
def test_small_integers(axis: Filtering) -> None:
    """No rounding in float64 but G's."""
    given, g = transforms(axis), np.array([5.0, -3, 2, 7, -1, 4, -6])[: axis.taps]
    d = np.arange(3.0, 3 + axis.reach) ** 2
    exact = np.correlate(d, g, "valid")[:: axis.stride]
    got = given.result @ ((given.filters @ g) * (given.image @ d))
    assert np.abs(got - exact).max() < 1e-11 * np.abs(exact).max()
    assert np.abs(got - exact[::-1]).max() > 1
    assert given.image.shape == (axis.places, axis.reach)
    assert axis.places <= axis.tile * axis.taps


@pytest.mark.parametrize("axis", EVERY, ids=str)
def test_integers_are_exact_modulo_a_power_of_two(axis: Filtering) -> None:
    given = integer_transforms(axis)
    if given is None:
        assert (transforms(axis).image % 1).any()
        return
    d = np.arange(3, 3 + axis.reach) ** 2
    g = np.array([5, -3, 2, 7, -1, 4, -6])[: axis.taps]
    image, filters, result = (
        matrix.astype(np.int64) for matrix in (given.image, given.filters, given.result)
    )
    got = result @ ((filters @ g) * (image @ d))
    wanted = np.correlate(d, g, "valid")[:: axis.stride] * 2**given.bits
    assert ((got - wanted) % 2**32 == 0).all()
    assert (wanted % 2**32 != 0).any()


@pytest.mark.parametrize(
    ("axis", "stated"),
    [
        (Filtering(2, 3), 16),
        (Filtering(4, 3), 861),
        (Filtering(2, 3, 2), 9),
        (Filtering(4, 3, 2), 206),
        (Filtering(2, 5), 861),
    ],
    ids=str,
)
def test_how_far_roundings_grow(axis: Filtering, stated: int) -> None:
    """What docs/convolutions.md calls a, of two axes: at most what any has."""
    assert stated - 1 < transforms(axis).growth ** 2 <= stated <= MOST_GROWTH
