"""N-grams of words, counted for all rows at once, against a loop over each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from nanoloom.frontend.text_steps.ngram_counts import ngram_counts, pool_of

Array = np.ndarray


def counted(
    places: dict[tuple[str, ...], int], rows: Array, lengths: Sequence[int], skips: int
) -> Array:
    made = np.zeros((len(rows), max(places.values()) + 1), np.float32)
    for count, row in zip(made, rows.tolist(), strict=True):
        for n in lengths:
            for apart in range(1, skips + 2 if n > 1 else 2):
                for begin in range(len(row) - (n - 1) * apart):
                    gram = tuple(row[begin : begin + (n - 1) * apart + 1 : apart])
                    if gram in places:
                        count[places[gram]] += 1
    return made


@pytest.mark.parametrize("seed", range(60))
def test_counts(seed: int) -> None:
    """Few words, so that n-grams overlap, repeat in the pool and lie across skips."""
    random = np.random.default_rng(seed)
    words = [f"w{i}" for i in range(random.integers(2, 6))]
    grams = [
        [tuple(random.choice(words, n)) for _ in range(random.integers(1, 7))]
        for n in (1, 2, 3)
    ]
    flat = [gram for part in grams for gram in part]
    order = random.permutation(len(flat)).tolist()
    starts = np.cumsum([0, len(grams[0]), 2 * len(grams[1])]).tolist()
    texts = [str(word) for gram in flat for word in gram]
    shape = int(random.integers(1, 5)), int(random.integers(1, 10))
    rows = random.choice([*words, "other"], shape).astype(object)
    lengths, skips = range(1, int(random.integers(2, 5))), int(random.integers(0, 4))
    pool = pool_of(tuple(texts), tuple(starts), tuple(order))
    made = ngram_counts(pool, rows, lengths, skips, len(flat))
    places = dict(zip(flat, order, strict=True))
    exact = counted(places, rows, lengths, skips)
    assert (made[:, : exact.shape[1]] == exact).all()
    assert made.sum() == exact.sum()


def test_something_is_counted() -> None:
    pool = pool_of(("a", "a", "b"), (0, 1), (1, 0))
    rows = np.array([["a", "b", "a", "b"]], object)
    assert ngram_counts(pool, rows, (1, 2), 0, 2).tolist() == [[2, 2]]
    assert ngram_counts(pool, rows, (2,), 2, 2).tolist() == [[3, 0]]
