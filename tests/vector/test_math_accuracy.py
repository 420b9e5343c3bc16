"""Every function of one operand against float64: over all exponents, and near 0."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from nanoloom.vector.math.page import document
from nanoloom.vector.math.table import BUILDERS, EXPANSIONS
from tests.vector.math_harness import Compiled, ulp_error

Array = npt.NDArray[Any]
Reference = Callable[[Array], Array]

ALL = EXPANSIONS | BUILDERS
TINY = 2.0**-149
HUGE = float(np.finfo(np.float32).max)


def each(function: Callable[[float], float]) -> Reference:
    return lambda x: np.fromiter(map(function, x.tolist()), np.float64, x.size)


def within_angles(function: Reference) -> Reference:
    return lambda x: np.where(np.abs(x) < 2.0**45, function(x), np.nan)


def sigmoid(x: Array) -> Array:
    """Without the denormals that the expansion documents as 0."""
    return np.where(x < -89, 0, 1 / (1 + np.exp(-x)))


def exp_nonpositive(x: Array) -> Array:
    """With 0 where 2^k has the exponent of zero, as the expansion documents."""
    return np.where(x < -87.6831, 0, np.exp(x))


# name -> (float64 reference, the interval where the function is not trivial)
REFERENCES: dict[str, tuple[Reference, float, float]] = {
    "math.exp": (np.exp, -104, 89),
    "math.exp2": (np.exp2, -150, 128),
    "math.expm1": (np.expm1, -18, 89),
    "math.log": (np.log, 0, 4),
    "math.log1p": (np.log1p, -1, 4),
    "math.log2": (np.log2, 0, 4),
    "math.log10": (np.log10, 0, 4),
    "math.erf": (each(math.erf), -4.1, 4.1),
    "math.erfc": (each(math.erfc), -4, 10.2),
    "math.tanh": (np.tanh, -9.2, 9.2),
    "math.sqrt": (np.sqrt, 0, 4),
    "math.rsqrt": (lambda x: 1 / np.sqrt(x), 0, 4),
    "math.cbrt": (np.cbrt, -8, 8),
    "math.sin": (within_angles(np.sin), -1e4, 1e4),
    "math.cos": (within_angles(np.cos), -1e4, 1e4),
    "math.tan": (within_angles(np.tan), -1e4, 1e4),
    "math.asin": (np.arcsin, -1, 1),
    "math.acos": (np.arccos, -1, 1),
    "math.atan": (np.arctan, -10, 10),
    "math.sinh": (np.sinh, -90, 90),
    "math.cosh": (np.cosh, -90, 90),
    "math.asinh": (np.arcsinh, -10, 10),
    "math.acosh": (np.arccosh, 1, 10),
    "math.atanh": (np.arctanh, -1, 1),
    "sigmoid": (sigmoid, -88.7, 18),
    "exp, x <= 0": (exp_nonpositive, -88, 0),
}
NONPOSITIVE = ["exp, x <= 0"]  # those that take no other operand
UNARY = sorted(REFERENCES)
SPECIALS = [0.0, TINY, 2.0**-127, 2.0**-126, 0.5, 1.0, 2.0, 3.0, HUGE, math.inf]


def samples(low: float, high: float) -> Array:
    """2^20 f32 of every sign and exponent, 2^18 inside an interval, the specials."""
    bits = np.arange(0, 2**32, 4093, dtype=np.uint64).astype(np.uint32)
    inside = np.random.default_rng(7).uniform(low, high, 2**18).astype(np.float32)
    special = np.array([*SPECIALS, math.nan], np.float32)
    spread = bits.view(np.float32)
    spread = np.where(np.isnan(spread), np.float32(np.nan), spread)  # none signalling
    return np.concatenate([spread, inside, special, -special])


def within_domain(name: str, x: Array) -> Array:
    return -abs(x) if name in NONPOSITIVE else x


def exact(name: str, x: Array) -> Array:
    with np.errstate(all="ignore"):
        return REFERENCES[name][0](x.astype(np.float64))


def test_references_cover_the_table() -> None:
    assert set(ALL) - set(REFERENCES) == {"math.powf", "math.atan2", "arith.remf"}


@pytest.mark.parametrize("name", UNARY)
def test_error_is_below_the_stated_one(name: str) -> None:
    x = within_domain(name, samples(*REFERENCES[name][1:]))
    run = Compiled.build("16xf32", 1, ALL[name].build)
    got, true = run(x), exact(name, x)
    error = ulp_error(got, true)
    worst = int(error.argmax())
    assert error[worst] <= ALL[name].ulp, (x[worst], got[worst], true[worst])
    assert np.isnan(got[np.isnan(x)]).all()
    zeros = np.zeros_like(got)
    assert ulp_error(zeros, true).max() > ALL[name].ulp  # a wrong result must fail
    off = got * np.float32(1 + 2.0**-20)
    assert ulp_error(off, true).max() > ALL[name].ulp


@pytest.mark.parametrize("name", UNARY)
def test_special_values_are_those_of_ieee(name: str) -> None:
    """Where the exact result is 0, inf or NaN it is met, with the sign of a zero."""
    positive = np.array([*SPECIALS, math.nan], np.float32)
    x = within_domain(name, np.concatenate([positive, -positive]))
    got = Compiled.build("16xf32", 1, ALL[name].build)(x)
    true = exact(name, x).astype(np.float32)
    special = ~np.isfinite(true) | (true == 0)
    np.testing.assert_array_equal(got[special], true[special])
    zero = true == 0
    assert (np.signbit(got) == np.signbit(true))[zero].all(), x[zero]


@pytest.mark.parametrize("name", ["math.erf", "math.tanh", "sigmoid", "math.sin"])
def test_bounded_functions_stay_in_bounds(name: str) -> None:
    x = samples(-20, 20)
    got = Compiled.build("16xf32", 1, ALL[name].build)(x)
    low = 0.0 if name == "sigmoid" else -1.0
    assert np.nanmin(got) >= low
    assert np.nanmax(got) <= 1.0
    ends = np.array([-math.inf, math.inf], np.float32)
    if name != "math.sin":
        limits = Compiled.build("16xf32", 1, ALL[name].build)(ends)
        assert limits.tolist() == [low, 1.0]


def test_exact_where_promised() -> None:
    k = np.arange(-149, 128)
    powers = np.ldexp(np.float32(1), k).astype(np.float32)
    exp2 = Compiled.build("16xf32", 1, ALL["math.exp2"].build)
    log2 = Compiled.build("16xf32", 1, ALL["math.log2"].build)
    np.testing.assert_array_equal(exp2(k.astype(np.float32)), powers)
    np.testing.assert_array_equal(log2(powers), k.astype(np.float32))


def test_ulp_error_measures() -> None:
    one = np.float32(1)
    got = np.array([1, np.nextafter(one, np.float32(2)), TINY, np.inf, np.nan, 1])
    true = np.array([1, 1, 0, 2.0**128, np.nan, np.nan])
    measured = ulp_error(got.astype(np.float32), true)
    assert measured.tolist() == [0, 1, 1, 0, 0, math.inf]


def test_the_documentation_is_this_table(request: pytest.FixtureRequest) -> None:
    text = (request.config.rootpath / "docs" / "math.md").read_text()
    assert text == document()
