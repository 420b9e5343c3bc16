"""Which dimensions of a shape are one of an image's."""

from __future__ import annotations

import pytest

from nanoloom.ir.regrouped_axes import groups_of, is_reduced, matched


@pytest.mark.parametrize(
    ("shape", "sizes", "groups"),
    [
        ((2, 20, 20), (2, 20, 1, 20), [[0], [1], [2]]),
        ((2, 20, 1, 20), (2, 20, 1, 20), [[0], [1], [2], [3]]),
        ((1, 2, 20, 20), (2, 20, 1, 20), [[0, 1], [2], [3]]),  # its 1 is elsewhere
        ((4, 3, 5, 3, 7), (12, 15, 7), [[0, 1], [2, 3], [4]]),  # tiles of 3 x 3
        ((1, 1, 1), (1, 1), []),
        ((1,), (1, 1), [[0]]),
    ],
)
def test_groups(
    shape: tuple[int, ...], sizes: tuple[int, ...], groups: list[list[int]]
) -> None:
    assert groups_of(shape, sizes) == groups


def test_a_shape_without_extents_of_one() -> None:
    assert is_reduced((2, 3), (1, 2, 1, 3)) and matched((2, 3), (1, 2, 1, 3)) == [1, 3]
    assert not is_reduced((2, 3), (2, 4, 3)) and not is_reduced((1, 2), (2, 1))
    with pytest.raises(AssertionError):
        matched((2, 5), (2, 3))
