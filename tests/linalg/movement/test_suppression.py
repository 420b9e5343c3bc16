"""NonMaxSuppression beside boxes taken one by one, in the arithmetic of float32."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.drawn_cases import few_examples
from tests.linalg.single import run_node

Array = np.ndarray
LIMIT = np.float32(0.4)


def edges_of(boxes: Array, by_center: bool) -> Array:
    """Least and largest y, least and largest x."""
    a, b, c, d = np.moveaxis(boxes, -1, 0)
    if by_center:
        two = np.float32(2)
        with np.errstate(invalid="ignore"):
            return np.stack([b - d / two, b + d / two, a - c / two, a + c / two])
    return np.stack(
        [np.minimum(a, c), np.maximum(a, c), np.minimum(b, d), np.maximum(b, d)]
    )


def covers(edges: Array, one: int, others: Array) -> Array:
    """Which others have too much in common with one box; none with one of no area."""
    low, high, left, right = edges[:, one]
    lows, highs, lefts, rights = edges[:, others]
    with np.errstate(all="ignore"):
        height = np.minimum(high, highs) - np.maximum(low, lows)
        width = np.minimum(right, rights) - np.maximum(left, lefts)
        shared = height * width
        mine, other = (high - low) * (right - left), (highs - lows) * (rights - lefts)
        whole = mine + other - shared
        is_there = (height > 0) & (width > 0) & (mine > 0) & (other > 0) & (whole > 0)
        return is_there & (shared > 0) & (shared / whole > LIMIT)


def kept(edges: Array, scores: Array, most: int, least: float | None) -> list[int]:
    """The best first, of equal ones the first one; NaN is the worst."""
    below = np.where(np.isnan(scores), -np.inf, scores)
    left = np.argsort(-below, kind="stable")
    if least is not None:
        left = left[scores[left] > np.float32(least)]
    found: list[int] = []
    while len(left) and len(found) < most:
        found.append(int(left[0]))
        left = left[1:][~covers(edges, found[-1], left[1:])]
    return found


def check(boxes: Array, scores: Array, most: int, least: float | None, center: bool):
    limits = [np.array([most], np.int64), np.array([LIMIT])]
    limits += [] if least is None else [np.array([least], np.float32)]
    (rows,) = run_node(
        "NonMaxSuppression",
        [boxes, scores, *limits],
        constants=range(2, 2 + len(limits)),
        version=11,
        center_point_box=int(center),
    )
    right = [
        (batch, kind, box)
        for batch in range(len(scores))
        for kind in range(scores.shape[1])
        for box in kept(
            edges_of(boxes[batch], center), scores[batch, kind], most, least
        )
    ]
    np.testing.assert_array_equal(rows, np.array(right, np.int64).reshape(-1, 3))


@few_examples(30)
@given(
    st.integers(1, 90),
    st.integers(0, 2**32 - 1),
    st.sampled_from((0, 1, 7, 100)),
    st.sampled_from((None, 0.0, 0.5, 2.0)),
    st.booleans(),
)
def test_any_boxes(
    count: int, seed: int, most: int, least: float | None, center: bool
) -> None:
    random = np.random.default_rng(seed)
    boxes = random.integers(-4, 12, (2, count, 4)).astype(np.float32)
    scores = random.integers(-2, 9, (2, 3, count)).astype(np.float32) / 8
    scores[random.random(scores.shape) < 0.05] = np.nan
    scores[random.random(scores.shape) < 0.05] = -0.0
    boxes[random.random(boxes.shape) < 0.02] = np.nan
    boxes[random.random(boxes.shape) < 0.02] = np.inf
    check(boxes, scores, most, least, center)


@pytest.mark.parametrize("side", [5.0, 2000.0])
def test_many_boxes(side: float) -> None:
    """Where most cover each other, and where hardly any do."""
    random = np.random.default_rng(8)
    corner = random.random((1, 3001, 2)) * side
    boxes = np.concatenate([corner, corner + 3 + random.random((1, 3001, 2))], -1)
    scores = random.random((1, 1, 3001)).astype(np.float32)
    check(boxes.astype(np.float32), scores, 3001, 0.25, center=False)
