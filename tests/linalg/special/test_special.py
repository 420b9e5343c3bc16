"""Special functions against numbers of 40 digits, over their ranges and near zeros."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np
import onnx
import pytest

from nanoloom.graph.custom_types import SPECIAL as KNOWN
from nanoloom.linalg.special.table import (
    NEAR_ZEROS,
    OF_DIALECT,
    OPERATORS,
    SPECIAL,
)
from tests.linalg.single import run_node

Array = np.ndarray[Any, np.dtype[np.float64]]
Exact = Callable[[Any], Any]
RNG = np.random.default_rng(3)
SPREAD = np.geomspace(1e-300, 1.0, 12)


def around(low: float, high: float, count: int = 50) -> Array:
    return RNG.uniform(low, high, count)


def inverse(of_rest: Exact, rest: Any, x: Any) -> Any:
    """Where of_rest, which falls as exp(-x^2), is a number: by Newton on logarithms."""
    for _ in range(60):
        found = of_rest(x)
        slope = -2 / mp.sqrt(mp.pi) * mp.exp(-x * x) / found
        step = (mp.log(found) - mp.log(rest)) / slope
        x -= step
        if abs(step) < mp.mpf(10) ** -36:
            break
    return x


def erfinv(y: Any) -> Any:
    if not y:
        return y
    rest = 1 - abs(y)
    begin = mp.erfinv(abs(y)) if rest > 0.1 else mp.sqrt(-mp.log(rest))
    return mp.sign(y) * inverse(mp.erfc, rest, begin)


def ndtri(p: Any) -> Any:
    if 2 * p > 1:
        return -ndtri(1 - p)
    if 2 * p == 1:
        return mp.mpf(0)
    return -mp.sqrt(2) * inverse(mp.erfc, 2 * p, mp.sqrt(-mp.log(p)))


def erfcx(x: Any) -> Any:
    return mp.exp(x * x) * mp.erfc(x)


def ndtr(x: Any) -> Any:
    return mp.erfc(-x / mp.sqrt(2)) / 2


def log_ndtr(x: Any) -> Any:
    return mp.log(ndtr(x))


def lgamma(x: Any) -> Any:
    return mp.re(mp.loggamma(x))


def scaled(n: int) -> Exact:
    return lambda x: mp.exp(-abs(x)) * mp.besseli(n, x)


ONE = np.concatenate([1 + SPREAD[-5:] / 9, 1 - SPREAD[-5:] / 9])
BESSEL = np.concatenate([SPREAD, around(-20, 20), [-700.0, 8.0, 712.0]])
GAMMA = np.concatenate(
    [SPREAD, 1 / SPREAD, ONE, ONE + 1, around(0, 12), around(-10, 0)]
)
CASES: dict[str, tuple[Exact, Array]] = {
    "Erfcx": (erfcx, np.concatenate([around(-26, 30), SPREAD, -SPREAD, [1e3]])),
    "ErfInv": (erfinv, np.concatenate([around(-1, 1), SPREAD[:-1], [1 - 2.0**-53]])),
    "Ndtri": (
        ndtri,
        np.concatenate([around(0, 1), SPREAD[:-1], [0.5, 5e-324, 1 - 2.0**-53]]),
    ),
    "Ndtr": (ndtr, np.concatenate([around(-37, 9), SPREAD, -SPREAD])),
    # Above 0: tests/vector/test_math_double.py; MLIR's own log1p loses digits there.
    "LogNdtr": (log_ndtr, np.concatenate([around(-40, 0), -SPREAD, [-1e4]])),
    "Lgamma": (lgamma, GAMMA),
    "Digamma": (mp.digamma, GAMMA),
    "I0": (lambda x: mp.besseli(0, x), BESSEL),
    "I1": (lambda x: mp.besseli(1, x), BESSEL),
    "I0e": (scaled(0), BESSEL),
    "I1e": (scaled(1), BESSEL),
}
ENDS: dict[str, tuple[list[float], list[float]]] = {
    "Erfcx": ([-30, -np.inf, np.inf], [np.inf, np.inf, 0]),
    "ErfInv": ([-1, 1, 1.5, -np.inf], [-np.inf, np.inf, np.nan, np.nan]),
    "Ndtri": ([0, 1, -0.5, 1.5], [-np.inf, np.inf, np.nan, np.nan]),
    "Ndtr": ([-np.inf, -50, np.inf], [0, 0, 1]),
    "LogNdtr": ([-np.inf, np.inf], [-np.inf, 0]),
    "Lgamma": ([0, -1, -7, np.inf, -np.inf], [np.inf] * 5),
    "Digamma": ([0.0, -0.0, -3, np.inf], [-np.inf, np.inf, np.nan, np.inf]),
    "I0": ([-np.inf, np.inf], [np.inf, np.inf]),
    "I1": ([-np.inf, np.inf, 0], [-np.inf, np.inf, 0]),
    "I0e": ([-np.inf, np.inf], [0, 0]),
    "I1e": ([-np.inf, np.inf, 0], [0, 0, 0]),
}


def errors(found: Array, x: Array, exact: Exact, least: float) -> Array:
    """In last places of the result, or of `least` where that is larger."""
    with mp.workdps(40):
        true = [exact(mp.mpf(float(each))) for each in x]
        apart = [
            float(abs(mp.mpf(float(y)) - t)) for y, t in zip(found, true, strict=True)
        ]
    size = np.maximum(np.abs([float(t) for t in true]), least)
    return np.array(apart) / np.spacing(size)


def test_every_function_has_a_type_and_a_case() -> None:
    assert set(KNOWN) == set(OPERATORS) == {*SPECIAL, *OF_DIALECT}
    assert set(SPECIAL) == {*CASES, "Polygamma"} == {*ENDS, "Polygamma"}


@pytest.mark.parametrize("name", CASES)
def test_error_is_below_the_stated_one(name: str) -> None:
    exact, x = CASES[name]
    least = 1.0 if SPECIAL[name].note.endswith(NEAR_ZEROS) else 0.0
    (found,) = run_node(name, [x], domain="nanoloom")
    assert errors(found, x, exact, least).max() <= SPECIAL[name].ulp
    off = errors(found * (1 + 2.0**-47), x, exact, least)
    assert off.max() > SPECIAL[name].ulp  # a wrong result must fail


@pytest.mark.parametrize("n", [1, 2, 9])
def test_derivatives_of_digamma(n: int) -> None:
    x = np.concatenate([around(0, 12), around(-6, 0, 20), np.geomspace(1e-9, 1e9, 9)])
    (found,) = run_node("Polygamma", [x], domain="nanoloom", n=n)
    error = errors(found, x, lambda v: mp.polygamma(n, v), 0.0)
    assert error.max() <= SPECIAL["Polygamma"].ulp
    (pole,) = run_node("Polygamma", [np.array([-2.0])], domain="nanoloom", n=n)
    assert pole == (np.inf if n % 2 else -np.inf)


@pytest.mark.parametrize("name", ENDS)
def test_ends(name: str) -> None:
    given, wanted = ENDS[name]
    x = np.array([*given, np.nan])
    for dtype in (np.float32, np.float64):
        (found,) = run_node(name, [x.astype(dtype)], domain="nanoloom")
        np.testing.assert_array_equal(found, np.array([*wanted, np.nan], dtype))


def test_narrow_results_are_rounded_once() -> None:
    x = around(0.1, 30).astype(np.float32)
    (found,) = run_node("Lgamma", [x], domain="nanoloom")
    (wide,) = run_node("Lgamma", [x.astype(np.float64)], domain="nanoloom")
    np.testing.assert_array_equal(found, wide.astype(np.float32))


@pytest.mark.parametrize("name", OF_DIALECT)
def test_functions_of_the_dialect(name: str) -> None:
    x = around(0.1, 8, 5)
    y = [x[:, None]] if name == "Atan2" else []
    (found,) = run_node(name, [x, *y], domain="nanoloom")
    wanted = np.vectorize(getattr(math, OF_DIALECT[name]))(x, *y)
    np.testing.assert_allclose(found, wanted, rtol=1e-14)


def test_bits_as_another_type() -> None:
    x = np.array([1.5, -0.0, np.nan, np.inf], np.float32)
    (found,) = run_node("BitCast", [x], domain="nanoloom", to=onnx.TensorProto.INT32)
    np.testing.assert_array_equal(found, x.view(np.int32))
