"""The pictures of the binary network's example, and how its answers are counted."""

from __future__ import annotations

import numpy as np

from examples.binary.demo import accuracy
from examples.binary.shapes import DIRECTIONS, SIZE, draw


def test_pictures_are_of_all_kinds_and_seeded() -> None:
    pictures, kinds = draw(200, seed=3)
    assert pictures.shape == (200, 1, SIZE, SIZE) and pictures.dtype == np.float32
    assert set(kinds.tolist()) == set(range(len(DIRECTIONS)))
    again, _ = draw(200, seed=3)
    other, _ = draw(200, seed=4)
    assert (pictures == again).all() and not (pictures == other).all()


def test_stripes_are_even_along_their_direction() -> None:
    """Rows of the first kind differ less within than between them."""
    pictures, kinds = draw(400, seed=5)
    rows = pictures[kinds == 0, 0].mean(axis=2).var(axis=1).mean()
    columns = pictures[kinds == 0, 0].mean(axis=1).var(axis=1).mean()
    assert rows > 4 * columns


def test_accuracy_counts_the_highest_scores() -> None:
    scores = np.array([[3, 1, 2, 0], [0, 1, 5, 2], [9, 1, 2, 0]], np.float32)
    assert accuracy(scores, np.array([0, 2, 1])) == 2 / 3
    assert accuracy(scores, np.array([1, 1, 1])) == 0
