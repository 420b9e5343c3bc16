"""Differences of two results: distances, bounds, verdicts."""

from __future__ import annotations

import numpy as np
import pytest

from nanoloom.inspect.differences import compare, spread, ulps
from nanoloom.inspect.rounding import FACTOR

ONE = np.array([1.0, -2.0, 0.5], np.float32)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_ulps_count_floats(dtype: type) -> None:
    one = np.array([1, -1, 0, 0, 3], dtype)
    up = np.nextafter(one, np.array(np.inf, dtype))
    np.testing.assert_array_equal(ulps(one, one), 0)
    np.testing.assert_array_equal(ulps(one, up), 1)
    tiny = np.nextafter(np.zeros(1, dtype), np.array(1, dtype))
    np.testing.assert_array_equal(ulps(-tiny, tiny), 2)
    np.testing.assert_array_equal(ulps(-np.zeros(1, dtype), np.zeros(1, dtype)), 0)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_single_number(dtype: type) -> None:
    one = np.array(1, dtype)
    assert compare("y", one, one, [one]).passed
    found = compare("y", np.nextafter(one, np.array(2, dtype)), one, [one])
    assert not found.passed and found.ulp == 1


def test_within_the_bound() -> None:
    noise = [ONE + np.float32(1e-6), ONE]
    found = compare("y", ONE + np.float32(2e-6), ONE, noise)
    assert found.passed and found.proves
    assert found.bound == pytest.approx(FACTOR * 1e-6, rel=0.1)
    assert found.absolute == pytest.approx(2e-6, rel=0.1)
    assert found.relative == pytest.approx(4e-6, rel=0.1)
    assert found.ulp > 10 and found.differing == 3


def test_beyond_the_bound() -> None:
    noise = [ONE + np.float32(1e-6)]
    found = compare("y", ONE + np.float32(1e-4), ONE, noise)
    assert not found.passed and "3 of 3 elements differ by more" in found.reason
    assert not compare("y", 0 * ONE, ONE, noise).passed


def test_a_bound_that_zeros_would_pass_is_told() -> None:
    found = compare("y", ONE, ONE, [ONE + 10])
    assert found.passed and not found.proves


def test_nan_and_infinity_must_stand_in_the_same_places() -> None:
    odd = np.array([np.nan, np.inf, 1], np.float32)
    assert compare("y", odd, odd, [odd]).passed
    for wrong in ([0, np.inf, 1], [np.nan, -np.inf, 1], [np.nan, np.inf, np.nan]):
        found = compare("y", np.array(wrong, np.float32), odd, [odd])
        assert (
            not found.passed and "1 of 3 elements are infinite or NaN" in found.reason
        )


def test_a_reference_without_limit_proves_nothing() -> None:
    endless = [np.full(3, np.inf, np.float32)]
    assert compare("y", ONE, ONE, endless).passed
    found = compare("y", ONE + 1, ONE, endless)
    assert not found.passed and "overflow" in found.reason


def test_types_and_shapes_must_agree() -> None:
    found = compare("y", ONE.astype(np.float64), ONE, [ONE])
    assert "is float64 [3] and should be float32 [3]" in found.reason
    assert not compare("y", ONE[:2], ONE, [ONE]).passed


def test_integers_are_exact_unless_rounding_changes_them() -> None:
    wanted = np.arange(10)
    got = np.where(wanted == 3, 4, wanted)
    assert "1 of 10 integers differ" in compare("y", got, wanted, [wanted]).reason
    assert compare("y", got, wanted, [np.where(wanted == 7, 8, wanted)]).passed
    bools = np.array([True, False])
    assert compare("y", bools, bools, [bools]).passed
    assert not compare("y", ~bools, bools, [bools]).passed


def test_no_elements() -> None:
    empty = np.empty((0, 3), np.float32)
    assert compare("y", empty, empty, [empty]).passed


def test_a_spread_looks_at_finite_elements() -> None:
    exact = np.array([1.0, np.inf, np.nan])
    assert spread(exact, np.array([1.5, 0, 0])) == 0.5
    assert spread(exact, np.array([np.nan, 0, 0])) == np.inf
