"""Words of trees in pairs lead where their branches lead."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nanoloom.linalg.classical.forest import Forest
from nanoloom.linalg.classical.walk import in_pairs, steps_down, words
from tests.linalg.classical.test_leaf_bits import Array, features, grown, holds, walked


def led(forest: Forest, x: Array, steps: int) -> Array:
    """Of each row, the place in each tree after so many steps by words."""
    table, width = words(forest)
    assert table.max() < 2**31 and (width is None) == (table.shape[1] == 2)
    one = table[:, 0] if width is None else table[:, 0] & ((1 << width) - 1)
    feature = table[:, 1] if width is None else table[:, 0] >> width
    taken = holds(replace(forest, features=feature), x)
    at = np.broadcast_to(forest.roots, (len(x), len(forest.roots)))
    for _ in range(steps):
        stays = np.take_along_axis(taken, at, axis=1)
        at = (one[at] >> 1) + np.where(stays, 0, one[at] & 1)
    return at


@pytest.mark.parametrize("seed", range(6))
def test_words_lead_to_the_leaf(seed: int) -> None:
    """It is left by no row, whatever it is told to compare."""
    r = np.random.default_rng(seed)
    forest, x = grown(r, 5, (2, 40, 200)[seed % 3], 2), features(r, 19)
    pairs, right = in_pairs(forest), np.array(walked(forest, x))
    steps = steps_down(forest)
    assert steps_down(pairs).tolist() == steps.tolist()
    for more in (0, 1, 7):
        at = led(pairs, x, int(steps.max()) + more)
        for part in ("thresholds", "modes", "weights", "missing"):
            same = getattr(pairs, part)[at], getattr(forest, part)[right]
            np.testing.assert_array_equal(*same)


def test_more_features_than_a_word_has_room_for() -> None:
    forest = in_pairs(grown(np.random.default_rng(1), 5, 200, 2))
    width = words(forest)[1]
    assert width is not None
    last = forest.features + (1 << (31 - width)) - 1 - forest.features.max()
    assert words(replace(forest, features=last))[1] == width
    two, width = words(replace(forest, features=last + 1))
    assert width is None and two[:, 1].tolist() == (last + 1).tolist()
    assert two[:, 0].tolist() == (2 * forest.yes + (forest.no > forest.yes)).tolist()


def test_a_node_of_two_trees() -> None:
    """Where branches meet again, so do the pairs."""
    whole = grown(np.random.default_rng(3), 1, 40, 1)
    forest = replace(whole, roots=np.array([0, int(whole.yes[0]), 0]))
    x = features(np.random.default_rng(4), 11)
    at = led(in_pairs(forest), x, int(steps_down(forest).max()))
    right = forest.weights[np.array(walked(forest, x))]
    np.testing.assert_array_equal(in_pairs(forest).weights[at], right)
