"""powf and atan2: two operands, and special cases enough for a table of their own."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from nanoloom.ir.mlir import ir
from nanoloom.vector.math.lanes import Lanes
from nanoloom.vector.math.power import BY_EXPONENT, powf
from nanoloom.vector.math.table import EXPANSIONS
from tests.vector.math_harness import Compiled, ulp_error

Array = npt.NDArray[Any]

HALF = [0.0, 1e-45, 1e-39, 1e-30, 0.5, 0.99999994, 1.0, 1.0000001, 1.5, 2.0, 3.0, 5.0]
LARGE = [8388607.5, 16777215.0, 16777216.0, 1e30, 3.4028235e38, math.inf]
VALUES = [sign * value for value in (*HALF, *LARGE) for sign in (1.0, -1.0)]
PAIRS = np.array(
    [(x, y) for x in (*VALUES, math.nan) for y in (*VALUES, math.nan)], np.float32
)


def run(name: str, x: Array, y: Array) -> Array:
    return Compiled.build("16xf32", 2, EXPANSIONS[name].build)(x, y)


def reference(name: str, x: Array, y: Array) -> Array:
    function = np.power if name == "math.powf" else np.arctan2
    with np.errstate(all="ignore"):
        return function(x.astype(np.float64), y.astype(np.float64))


def powers(rng: np.random.Generator, size: int) -> tuple[Array, Array]:
    """Operands of powers of every exponent, results from 0 to inf, near 1, negative."""
    logs = rng.uniform(-149, 128, size)
    small = rng.uniform(0.99, 1.01, size)
    x = np.concatenate([2.0**logs, small, rng.uniform(-9, 9, size)])
    exponents = rng.uniform(-152, 129, size) / logs
    y = [exponents, rng.uniform(-9000, 9000, size), rng.integers(-40, 40, size)]
    return x.astype(np.float32), np.concatenate(y).astype(np.float32)


def points(rng: np.random.Generator, size: int) -> tuple[Array, Array]:
    """Points around 0, their coordinates of like and of unlike size."""
    y, x = rng.normal(size=(2, size))
    steep = np.ldexp(y, rng.integers(-120, 120, size))
    rise = np.concatenate([y, steep]).astype(np.float32)
    return rise, np.concatenate([x, x]).astype(np.float32)


@pytest.mark.parametrize(
    ("name", "make"), [("math.powf", powers), ("math.atan2", points)]
)
def test_error_is_below_the_stated_one(name: str, make: Any) -> None:
    x, y = make(np.random.default_rng(11), 2**17)
    got, true = run(name, x, y), reference(name, x, y)
    error = ulp_error(got, true)
    worst = int(error.argmax())
    assert error[worst] <= EXPANSIONS[name].ulp, (x[worst], y[worst], got[worst])
    assert ulp_error(np.zeros_like(got), true).max() > EXPANSIONS[name].ulp
    assert ulp_error(run(name, y, x), true).max() > EXPANSIONS[name].ulp


@pytest.mark.parametrize("exponent", [*BY_EXPONENT, -2.0, 4.0])
def test_constant_exponents(exponent: float) -> None:
    """The short way has the error and the special cases of the long one."""

    def build(x: ir.Value) -> ir.Value:
        return powf(x, Lanes(x).splat(exponent).value)

    bits = np.arange(0, 2**32, 16381, dtype=np.uint64).astype(np.uint32)
    x = np.concatenate([bits.view(np.float32), np.array(VALUES, np.float32)])
    x = np.where(np.isnan(x), np.float32(np.nan), x)
    compiled = Compiled.build("16xf32", 1, build)
    assert ("double" in compiled.llvm) == (exponent not in BY_EXPONENT)
    got, true = compiled(x), reference("math.powf", x, np.full_like(x, exponent))
    assert ulp_error(got, true).max() <= EXPANSIONS["math.powf"].ulp
    number = ~np.isnan(true)
    assert (np.signbit(got) == np.signbit(true))[number].all()


@pytest.mark.parametrize("name", ["math.powf", "math.atan2"])
def test_special_operands(name: str) -> None:
    """Every pair of 37 special values: the result of C, with the sign of its zero."""
    x, y = PAIRS.T.copy()
    got, true = run(name, x, y), reference(name, x, y)
    assert ulp_error(got, true).max() <= EXPANSIONS[name].ulp
    number = ~np.isnan(true)
    assert (np.signbit(got) == np.signbit(true))[number].all()


@pytest.mark.parametrize(
    ("x", "y", "power"),
    [
        (math.nan, 0.0, 1.0),
        (1.0, math.nan, 1.0),
        (-1.0, math.inf, 1.0),
        (-1.0, -math.inf, 1.0),
        (-8.0, 3.0, -512.0),
        (-8.0, 2.0, 64.0),
        (-8.0, 1 / 3, math.nan),
        (-0.0, -3.0, -math.inf),
        (-0.0, -2.0, math.inf),
        (-math.inf, 3.0, -math.inf),
        (-math.inf, -3.0, -0.0),
        (-math.inf, 0.5, math.inf),
        (0.5, math.inf, 0.0),
        (0.5, -math.inf, math.inf),
        (2.0, -149.0, 2.0**-149),
        (2.0, 128.0, math.inf),
        (-2.0, 16777216.0, math.inf),
    ],
)
def test_powers_by_name(x: float, y: float, power: float) -> None:
    """The cases of IEEE 754 in words of their own, not numpy's."""
    got = run("math.powf", np.array([x], np.float32), np.array([y], np.float32))
    want = np.array([power], np.float32)
    np.testing.assert_array_equal(got, want)
    assert np.isnan(power) or np.signbit(got) == np.signbit(want)
