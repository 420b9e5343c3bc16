"""TfIdfVectorizer by counting, optionals that are tensors, and boxes to be selected."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nanoloom.errors import Unsupported
from tests.drawn_cases import few_examples
from tests.linalg.single import run_node

POOL = [[2, 5, 7], [5, 7, 2, 2, 7, 5], [2, 5, 7]]  # 1-grams, 2-grams, one 3-gram
PLACES = [3, 0, 6, 1, 2, 8, 5]


def count(row: np.ndarray, low: int, high: int, skips: int) -> np.ndarray:
    found = np.zeros(9)
    grams = [tuple(p[i : i + n]) for n, p in enumerate(POOL, 1) for i in
             range(0, len(p), n)]  # fmt: skip
    for gram, place in zip(grams, PLACES, strict=True):
        n = len(gram)
        if not low <= n <= high:
            continue
        for distance in range(1, 2 if n == 1 else skips + 2):
            for start in range(len(row) - (n - 1) * distance):
                seen = row[start : start + (n - 1) * distance + 1 : distance]
                found[place] += tuple(seen) == gram
    return found


@given(
    st.sampled_from(["TF", "IDF", "TFIDF"]),
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(0, 4),
    st.sampled_from([(12,), (3, 9), (1, 1), (2, 4)]),
    st.sampled_from(["int32", "int64"]),
)
@few_examples(12)
def test_counts(
    mode: str, low: int, high: int, skips: int, shape: tuple[int, ...], kind: str
) -> None:
    low, high = min(low, high), max(low, high)
    x = np.random.default_rng(skips).choice([2, 5, 7, 9], shape).astype(kind)
    weights = [0.5 * i + 0.5 for i in range(len(PLACES))]
    got = run_node(
        "TfIdfVectorizer",
        [x],
        mode=mode,
        min_gram_length=low,
        max_gram_length=high,
        max_skip_count=skips,
        ngram_counts=[0, 3, 9],
        ngram_indexes=PLACES,
        pool_int64s=[number for part in POOL for number in part],
        weights=weights,
        version=9,
    )[0]
    rows = np.stack([count(row, low, high, skips) for row in x.reshape(-1, shape[-1])])
    in_place = np.zeros(9)
    in_place[PLACES] = weights  # a weight is of an n-gram of the pool
    right = {"TF": rows, "IDF": (rows > 0) * in_place, "TFIDF": rows * in_place}[mode]
    assert got.dtype == np.float32
    assert (got == right.reshape(got.shape)).all()


def test_as_far_apart_as_there_are_elements() -> None:
    got = run_node(
        "TfIdfVectorizer",
        [np.array([2, 9, 9, 5])],
        mode="TF",
        min_gram_length=2,
        max_gram_length=2,
        max_skip_count=1 << 62,
        ngram_counts=[0, 0],
        ngram_indexes=[0, 1],
        pool_int64s=[2, 5, 5, 2],
        version=9,
    )[0]
    assert got.tolist() == [1, 0]


def test_counts_are_not_all_zero() -> None:
    assert count(np.array([2, 5, 7, 2, 2]), 1, 3, 1).sum() == 5 + 2 + 1


def test_optional_tensors() -> None:
    x = np.arange(6.0).reshape(2, 3)
    assert (run_node("OptionalGetElement", [x], version=18)[0] == x).all()
    assert run_node("OptionalHasElement", [x], version=18)[0].tolist() is True


def test_refusals() -> None:
    x = np.array([1, 2], np.int64)
    gram = {
        "min_gram_length": 1,
        "max_gram_length": 1,
        "max_skip_count": 0,
        "ngram_counts": [0],
        "mode": "TF",
        "version": 9,
    }
    with pytest.raises(Unsupported, match="a place of its own"):
        run_node(
            "TfIdfVectorizer", [x], ngram_indexes=[0, 0], pool_int64s=[1, 2], **gram
        )
