"""Col2Im against a plain loop."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nanoloom.errors import ModelError
from tests.linalg.bounds import sample, within
from tests.linalg.single import run_node

pair = st.lists(st.integers(1, 3), min_size=2, max_size=2)


@settings(max_examples=12, deadline=None)
@given(pair, pair, pair, st.lists(st.integers(0, 2), min_size=4, max_size=4))
def test_col2im(
    block: list[int], strides: list[int], dilations: list[int], pads: list[int]
) -> None:
    image = [7, 8]
    counts = [
        (image[d] + pads[d] + pads[d + 2] - dilations[d] * (block[d] - 1) - 1)
        // strides[d]
        + 1
        for d in range(2)
    ]
    x = sample(1, (2, 3 * block[0] * block[1], counts[0] * counts[1]), "float32")
    sizes = [np.array(v, np.int64) for v in (image, block)]
    got = run_node(
        "Col2Im",
        [x, *sizes],
        constants=[1, 2],
        strides=strides,
        dilations=dilations,
        pads=pads,
    )[0]
    apart = x.astype(np.float64).reshape(2, 3, *block, *counts)
    right, size = np.zeros((2, 2, 3, *image))
    for k, m, i, j in product(*map(range, (*block, *counts))):
        row = i * strides[0] + k * dilations[0] - pads[0]
        column = j * strides[1] + m * dilations[1] - pads[1]
        if 0 <= row < image[0] and 0 <= column < image[1]:
            right[:, :, row, column] += apart[:, :, k, m, i, j]
            size[:, :, row, column] += abs(apart[:, :, k, m, i, j])
    steps = block[0] * block[1]
    assert within(got, right, steps, size)
    assert not within(0 * got, right, steps, size)


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ({"strides": [0, 1]}, "not all above 0"),
        ({"dilations": [1, -1]}, "not all above 0"),
        ({"strides": [2, 2]}, "its blocks need"),
    ],
)
def test_blocks_that_do_not_fit(attributes: dict[str, list[int]], reason: str) -> None:
    x = np.ones((1, 4, 9), np.float32)
    sizes = [np.array([4, 4]), np.array([2, 2])]
    run_node("Col2Im", [x, *sizes], constants=[1, 2])
    with pytest.raises(ModelError, match=reason):
        run_node("Col2Im", [x, *sizes], constants=[1, 2], **attributes)
