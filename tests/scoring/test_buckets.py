"""Every row is in one batch; batches are small enough, and of near lengths."""

from __future__ import annotations

import numpy as np
import pytest

from nanoloom.scoring.buckets import batches, bucket_of, mask_of, padded
from nanoloom.scoring.ragged import Ragged


def ragged(lengths: list[int]) -> Ragged:
    rows = [np.full(n, n, np.int64) for n in lengths]
    return Ragged.of(rows, np.zeros(0, np.int64))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("most", [1, 7, 64])
@pytest.mark.parametrize("is_padded", [True, False])
def test_each_row_once(seed: int, most: int, is_padded: bool) -> None:
    random = np.random.default_rng(seed)
    lengths = random.integers(0, 40, 200).tolist()
    rows = np.sort(random.choice(200, 150, replace=False))
    column = ragged(lengths)
    cut = list(batches({"x": column}, rows, most, padded=is_padded))
    assert sorted(np.concatenate(cut).tolist()) == rows.tolist()
    assert max(map(len, cut)) <= most
    for batch in cut:
        sizes = {lengths[i] for i in batch}
        assert len(sizes) == 1 or (is_padded and len({*map(bucket_of, sizes)}) == 1)
    again = list(batches({"x": column}, rows, most, padded=is_padded))
    assert all((a == b).all() for a, b in zip(cut, again, strict=True))


def test_rows_of_one_shape_stay_in_order() -> None:
    cut = list(batches({"x": np.zeros((10, 3))}, np.arange(10), 4, padded=False))
    assert [batch.tolist() for batch in cut] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert not list(batches({"x": ragged([])}, np.arange(0), 4, padded=True))


def test_at_most_a_third_is_padding() -> None:
    for length in range(9, 5000):
        bucket = bucket_of(length)
        assert length <= bucket == bucket_of(bucket)
        assert (bucket - length) / bucket < 1 / 3


def test_rows_are_filled_up_and_masked() -> None:
    column = ragged([2, 0, 3])
    made = padded(column, np.array([2, 0, 1]), 9)
    assert made.tolist() == [[3, 3, 3], [2, 2, 9], [9, 9, 9]]
    assert mask_of([3, 2, 0], np.dtype(bool)).tolist() == (made != 9).tolist()
