"""Functions of f64 against longer floats: the stated errors, and digits near 0."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import nanoloom
from nanoloom.ir.body_facts import OF_DOUBLES
from nanoloom.vector.math.table import BUILDERS, EXPANSIONS
from tests.vector.math_harness import Compiled

Long = Callable[[np.ndarray], np.ndarray]
ALL = EXPANSIONS | BUILDERS
# name -> (in longer floats, the interval where the function is not trivial)
REFERENCES: dict[str, tuple[Long, float, float]] = {
    "math.exp": (np.exp, -746, 710),
    "math.expm1": (np.expm1, -38, 710),
    "math.log": (np.log, 0, 4),
    "math.log1p": (np.log1p, -1, 4),
    "math.tanh": (np.tanh, -19.5, 19.5),
    "math.sinh": (np.sinh, -711, 711),
    "math.cosh": (np.cosh, -711, 711),
    "math.asinh": (np.arcsinh, -10, 10),
    "math.acosh": (np.arccosh, 1, 10),
    "math.atanh": (np.arctanh, -1, 1),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), -708, 40),
    "exp, x <= 0": (np.exp, -708, 0),
}

X = np.concatenate(
    [
        side * np.geomspace(low, high, 1501)
        for side in (1.0, -1.0)
        for low, high in ((5e-324, 1e-20), (1e-20, 1.0), (1.0, 800.0))
    ]
    + [[0.0, -0.0, np.inf, -np.inf, np.nan]]
)


def softplus(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def elu(x: np.ndarray) -> np.ndarray:
    return np.where(x > 0, x, np.expm1(x))


def log_ndtr(x: np.ndarray) -> np.ndarray:
    """log Phi(x) above 0."""
    rest = np.array([math.erfc(each * math.sqrt(0.5)) for each in x])
    return np.log1p(-rest.astype(np.longdouble) / 2)


def errors(operator: str, of_long: np.ndarray, domain: str = "") -> np.ndarray:
    """Of all of X the distance from the right value in its last place."""
    value = [
        helper.make_tensor_value_info(n, TensorProto.DOUBLE, [X.size]) for n in "xy"
    ]
    graph = helper.make_graph(
        [helper.make_node(operator, ["x"], ["y"], domain=domain)],
        operator,
        value[:1],
        value[1:],
    )
    opsets = [helper.make_opsetid(name, 18) for name in ("", domain)]
    model = helper.make_model(graph, opset_imports=opsets[: 1 + bool(domain)])
    onnx.checker.check_model(model)
    got = nanoloom.compile(model)(X)["y"]
    want = of_long.astype(np.float64)
    same = (got == want) & (np.signbit(got) == np.signbit(want))
    same |= np.isnan(got) & np.isnan(want)
    with np.errstate(invalid="ignore", over="ignore"):
        distance = np.abs(got.astype(np.longdouble) - of_long) / np.spacing(abs(want))
    return np.where(same, 0, distance)


def samples(name: str) -> np.ndarray:
    """Of the interval, near 0, and of every exponent; specials."""
    low, high = REFERENCES[name][1:]
    rng = np.random.default_rng(11)
    spread = rng.integers(0, 2**63, 2**14).view(np.float64)
    parts = (rng.uniform(low, high, 2**17), rng.uniform(-1, 1, 2**17), spread, -spread)
    special = [0.0, 0.5, 1.0, 5e-324, 2.0**-1022, np.inf]
    x = np.concatenate([*parts, special, np.negative(special)])
    inside = (x >= low) | (name not in BUILDERS)  # these say that they give 0 below
    return x[inside & ((x <= 0) | (name != "exp, x <= 0")) & ~np.isnan(x)]


@pytest.mark.parametrize("name", sorted(REFERENCES))
def test_error_is_below_the_stated_one(name: str) -> None:
    x, stated = samples(name), ALL[name].ulp_f64
    assert stated is not None
    got = Compiled.build("4xf64", 1, ALL[name].build)(x)
    with np.errstate(all="ignore"):
        long = REFERENCES[name][0](x.astype(np.longdouble))
        want = long.astype(np.float64)
        error = np.abs(got.astype(np.longdouble) - long) / np.spacing(np.abs(want))
    same = (got == want) & (np.signbit(got) == np.signbit(want))
    error = np.where(same | (np.isnan(got) & np.isnan(want)), 0, error)
    # One more than the largest number is infinite.
    error = np.where(np.isinf(want) & (got == np.finfo(np.float64).max), 1, error)
    worst = int(error.argmax())
    assert error[worst] <= stated, (x[worst], got[worst], want[worst])
    right = want[np.isfinite(want) & (want != 0)]
    off = np.abs(right * (1 + 2.0**-49) - right)
    assert (off / np.spacing(np.abs(right))).max() > stated  # wrong results would fail


def test_schedules_and_expansions_know_the_same_doubles() -> None:
    """What a schedule makes vectors of has an expansion, and the other way."""
    expanded = {name for name, x in EXPANSIONS.items() if x.ulp_f64}
    assert expanded == set(OF_DOUBLES)
    assert {name for name, x in ALL.items() if x.ulp_f64} == set(REFERENCES)


def test_digits_near_zero() -> None:
    """Of expm1 and log1p, which are within two units, and a rounding or two."""
    with np.errstate(all="ignore"):
        long = X.astype(np.longdouble)
        assert errors("Softplus", softplus(long)).max() < 4
        assert errors("Elu", elu(long)).max() < 4


def test_log_ndtr_above_zero() -> None:
    """Of libm's erfc and of log1p as above."""
    with np.errstate(all="ignore"):
        found = errors("LogNdtr", log_ndtr(X), "nanoloom")
    assert found[(X > 0) & (X < 20)].max() < 6
