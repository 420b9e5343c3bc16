"""f32 constants make of every sum what f64 makes of it."""

from __future__ import annotations

import numpy as np
import pytest

from nanoloom.linalg.builder.f32_requantization import (
    MOST_WRONG,
    F32Scale,
    Steps,
    to_f32_scale,
)

MOST = 9 * 255 * 127


def made(single: F32Scale, n: np.intp | int, sums: np.ndarray) -> np.ndarray:
    """What the instructions make of sums with the constants of a column."""
    offset = np.full(sums.shape, single.offsets[n])
    for wrong, own in zip(single.wrong[:, n], single.own[:, n], strict=True):
        offset = np.where(sums == wrong, own, offset)
    moved = sums.astype(np.float32) + offset
    product = moved.astype(np.float64) * single.factors[n]  # exact: of two f32
    return np.rint(product)


def wanted(factor: float, offset: float, sums: np.ndarray) -> np.ndarray:
    return np.rint((sums + offset) * factor)


@pytest.mark.drawn(one_in=2)
@pytest.mark.parametrize("limits", [(0, 255), (-128, 127), (-17, 238)])
def test_every_sum_is_as_in_f64(limits: tuple[int, int]) -> None:
    random = np.random.default_rng(0)
    factor = 10.0 ** random.uniform(-4, -1, 80)
    factor[:3] = 1e-9, 0.5, 0.25  # no step at all; ties that both can tell
    offset = random.uniform(-30000, 30000, 80)
    offset[3:40] = np.rint(offset[3:40]) + 1e-3 * random.standard_normal(37)
    single = to_f32_scale(factor, offset, *limits, MOST)
    alone = [
        to_f32_scale(f[None], o[None], *limits, MOST)
        for f, o in zip(factor, offset, strict=True)
    ]
    assert sum(x is not None for x in alone) > 70
    assert single is None or all(alone)
    sums = np.arange(-MOST, MOST + 1)
    for x, f, o in zip(alone, factor, offset, strict=True):
        if x is not None:
            assert (
                made(x, 0, sums).clip(*limits) == wanted(f, o, sums).clip(*limits)
            ).all()


def test_wrong_sums_have_their_own_offsets() -> None:
    """Where no constants have all steps right, up to two sums are kept apart.

    They come late or early: own offsets are one more, or one less.
    """
    random = np.random.default_rng(1)
    factor, offset = random.uniform(1e-3, 1.2e-3, 960), random.uniform(-2e4, 2e4, 960)
    single = to_f32_scale(factor, offset, 0, 255, MOST)
    assert single is not None
    counts = single.counts
    assert single.wrong.shape == (MOST_WRONG, 960)
    assert 0 < (counts == MOST_WRONG).sum() < (counts > 0).sum() < 400
    signs: set[float] = set()
    for n in np.flatnonzero(counts):
        apart = single.wrong[: counts[n], n].astype(np.int64)
        near = np.concatenate([np.arange(at - 300, at + 300) for at in apart])
        right = wanted(factor[n], offset[n], near)
        assert (made(single, n, near) == right).all()
        plain = near.astype(np.float32) + single.offsets[n]
        differs = np.rint(plain.astype(np.float64) * single.factors[n]) != right
        assert set(near[differs].tolist()) == set(apart.tolist())
        own = single.own[: counts[n], n]
        signs |= set(np.sign(own - single.offsets[n]).tolist())
    assert signs == {-1.0, 1.0}


def test_what_stays_in_f64() -> None:
    one, none = np.ones(1), np.zeros(1)
    assert to_f32_scale(-one, none, 0, 255, MOST) is None  # falls with the sum
    assert to_f32_scale(one * np.inf, none, 0, 255, MOST) is None
    assert to_f32_scale(one, one * np.nan, 0, 255, MOST) is None
    random = np.random.default_rng(2)
    deep = random.uniform(3e-5, 4e-5, 1000), random.uniform(-9e3, 9e3, 1000)
    assert to_f32_scale(*deep, 0, 255, 4096 * 255 * 127) is None


def test_a_wrong_constant_is_noticed() -> None:
    """A step that is a sum early or late is no right one."""
    factor, offset = np.array([0.00731]), np.array([123.4])
    steps = Steps.of(factor, offset, np.arange(1.0, 256.0), MOST)
    found = to_f32_scale(factor, offset, 0, 255, MOST)
    assert found is not None
    right, made = steps.compared(found.factors, found.offsets)
    assert right.all()
    assert not made.counts.any()
    for more in (-2, 2):
        right, _ = steps.compared(found.factors, found.offsets + np.float32(more))
        assert not right.any()
