"""Panels that end with the sums of their columns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nanoloom.weights.panels import Panels
from tests.linalg.bounds import sample

FORMS = [  # logical shape, and the panels of it
    ((9, 7), Panels((), 1, (0,), 4, 4, -128)),
    ((8, 8), Panels((), 1, (0,), 4, 4, 128)),
    ((2, 5, 9), Panels((0,), 2, (1,), 8, 4, -128)),
    ((3, 2, 6, 5), Panels((), 3, (0, 1, 2), 4, 4, -128)),
]


@pytest.mark.parametrize("name", ["int8", "uint8"])
@pytest.mark.parametrize("shape, panels", FORMS, ids=str)
def test_the_last_step_has_the_sums(
    shape: tuple[int, ...], panels: Panels, name: str
) -> None:
    weight = sample(1, shape, name, -128, 255)
    packed = panels.of(weight)
    assert packed.shape == panels.shape(shape)
    assert packed.dtype == weight.dtype
    without = replace(panels, sums=0).of(weight)
    assert (packed[..., :-1, :] == without).all()
    shared = len(panels.shared)
    last = np.ascontiguousarray(packed[..., -1, :]).view(np.int32)
    outer = tuple(range(shared + 1, last.ndim - 1))
    total = last.sum(outer).reshape(*last.shape[:shared], -1)
    wide = weight.astype(np.int64).sum(panels.reduced) * panels.sums
    columns = shape[panels.column]
    assert (total[..., :columns] == wide).all()
    assert not total[..., columns:].any()
    first = last[(*[slice(None)] * (shared + 1), *[0] * len(outer))]
    assert (first.reshape(total.shape) == total).all()  # in one place alone


def test_sums_wrap() -> None:
    weight = np.full((1 << 17, 1), 255, np.uint8)
    packed = Panels((), 1, (0,), 4, 4, 128).of(weight)
    last = np.ascontiguousarray(packed[0, -1]).view(np.int32)
    exact = 128 * 255 * (1 << 17)
    assert exact > 2**31
    assert last[0] == (exact + 2**31) % 2**32 - 2**31


@pytest.mark.parametrize(("depth", "columns"), [(16, 8), (21, 5), (3, 9)])
def test_words_of_bits_and_where_they_differ(depth: int, columns: int) -> None:
    """The second words are found again, and their places are counted."""
    panels = Panels((0,), 2, (1,), 4, 8, -1, differences=True)
    weight = sample(2, (2, depth, columns), "uint8", 0, 255)
    packed = panels.of(weight)
    assert packed.shape == panels.shape(weight.shape)
    steps, wide = packed.shape[2] - 1, packed.shape[1] * 4
    words = packed[:, :, :-1].reshape(2, -1, steps, 2, 4, 4)
    second = words[:, :, :, 0] ^ words[:, :, :, 1]
    back = np.stack([words[:, :, :, 0], second], 3)  # [2, panel, step, 2, column, 4]
    found = back.transpose(0, 2, 3, 5, 1, 4).reshape(2, steps * 8, wide)
    assert (found[:, :depth, :columns] == weight).all()
    assert not found[:, depth:].any() and not found[:, :, columns:].any()
    last = np.ascontiguousarray(packed[:, :, -1]).view(np.int32)
    ones = np.bitwise_count(words[:, :, :, 1]).sum((2, 4), dtype=np.int32)
    assert (last[..., :4] == -ones).all() and not last[..., 4:].any()
