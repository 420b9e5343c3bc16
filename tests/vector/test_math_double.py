"""Functions of f64 whose digits near 0 a plain formula loses, against longer floats."""

from __future__ import annotations

import math

import numpy as np
import onnx
from onnx import TensorProto, helper

import nanoloom

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


def test_digits_near_zero() -> None:
    """Kahan's corrections: each of their five operations rounds once, and libm's two
    are within a unit."""
    with np.errstate(all="ignore"):
        long = X.astype(np.longdouble)
        assert errors("Softplus", softplus(long)).max() < 4
        assert errors("Elu", elu(long)).max() < 4


def test_log_ndtr_above_zero() -> None:
    """Of libm's erfc and of log1p as above."""
    with np.errstate(all="ignore"):
        found = errors("LogNdtr", log_ndtr(X), "nanoloom")
    assert found[(X > 0) & (X < 20)].max() < 6
