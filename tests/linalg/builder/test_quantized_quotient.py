"""Quantization by a known scale multiplies, and rounds as a division does."""

from __future__ import annotations

import numpy as np
import pytest

from nanoloom.linalg.builder.quantized_quotient import MOST, RANGE, is_exact
from tests.linalg.bounds import sample
from tests.linalg.single import run_node

UNSAFE = 2.9602037e-03  # an x lies too near to the edge of a tie
SCALES = [0.02, 1.0, 0.5, 1 / 3, 7.25, 1e-12, 3e20, UNSAFE]


def near_ties(scale: np.float32) -> np.ndarray:
    """Every x within three places of (k + 1/2) scale, and what is special in f32."""
    middle = ((np.arange(-MOST, MOST) + 0.5) * np.float64(scale)).astype(np.float32)
    places = middle.view(np.int32)[:, None] + np.arange(-3, 4, dtype=np.int32)
    far = [0.0, -0.0, 1e-45, -1e-40, 3e38, -3e38, np.inf, -np.inf, np.nan]
    return np.concatenate(
        [places.view(np.float32).reshape(-1), np.array(far, np.float32)]
    )


def by_division(x: np.ndarray, scale: np.float32, zero: np.ndarray) -> np.ndarray:
    limits = np.iinfo(zero.dtype)
    with np.errstate(over="ignore"):
        whole = np.rint(x / scale).astype(np.float64) + int(zero)
    return np.clip(np.nan_to_num(whole, nan=limits.min), limits.min, limits.max)


@pytest.mark.drawn
@pytest.mark.parametrize("name", ["int8", "uint8"])
@pytest.mark.parametrize("number", SCALES)
def test_every_tie(number: float, name: str) -> None:
    scale = np.float32(number)
    x = near_ties(scale)
    for zero in (np.iinfo(name).min, 3, np.iinfo(name).max):
        point = np.asarray(zero, name)
        given = [x, np.asarray(scale), point]
        (got,) = run_node("QuantizeLinear", given, constants=[1, 2])
        np.testing.assert_array_equal(got, by_division(x, scale, point))


def test_a_product_with_the_inverse_is_not_enough() -> None:
    """The ties above tell the right way from a simpler one."""
    scale = np.float32(0.02)
    x = near_ties(scale)[: 7 * 2 * MOST]
    assert (np.rint(x * (np.float32(1) / scale)) != np.rint(x / scale)).any()


def test_most_scales_are_safe() -> None:
    scales = 2.0 ** sample(1, (500,), "float32", -20, 5)
    assert np.mean([is_exact(float(s)) for s in scales]) > 0.98
    assert not is_exact(float(np.float32(UNSAFE)))
    assert not any(is_exact(s) for s in (0.0, -0.5, np.inf, np.nan, *RANGE))
