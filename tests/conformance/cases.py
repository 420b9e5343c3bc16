"""The ONNX backend node tests: loading a case, running it, comparing with its answer."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from functools import cache

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.case.test_case import TestCase
from onnx.backend.test.loader import load_model_tests

Evaluate = Callable[[onnx.ModelProto, Mapping[str, np.ndarray]], list[np.ndarray]]


@cache
def cases() -> dict[str, TestCase]:
    """Every node test by its name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {case.name: case for case in load_model_tests(kind="node")}


def as_array(value: object) -> np.ndarray:
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    return np.asarray(value)


def run(case: TestCase, evaluate: Evaluate) -> str:
    """Run one case: "" if every output is right, else one sentence.

    Right means: the element type and shape of the expected output, integers and bool
    exact, floats within the case's own tolerance.
    """
    model = case.model
    assert model is not None and case.data_sets is not None
    initial = {x.name for x in model.graph.initializer}
    names = [x.name for x in model.graph.input if x.name not in initial]
    for inputs, expected in case.data_sets:
        feeds = {n: as_array(a) for n, a in zip(names, inputs, strict=False)}
        got = evaluate(model, feeds)
        for i, (one, other) in enumerate(zip(got, expected, strict=True)):
            wrong = difference(one, as_array(other), case.rtol, case.atol)
            if wrong:
                return f"output {i}: {wrong}"
    return ""


def difference(
    got: np.ndarray, wanted: np.ndarray, rtol: float, atol: float
) -> str:
    """What is wrong with an output, or ""."""
    if got.shape != wanted.shape:
        return f"shape {got.shape}, expected {wanted.shape}"
    if got.dtype != wanted.dtype:
        return f"type {got.dtype}, expected {wanted.dtype}"
    if got.dtype.kind in "iub":
        return "" if (got == wanted).all() else "integers differ"
    one, other = got.astype(np.float64), wanted.astype(np.float64)
    if np.allclose(one, other, rtol=rtol, atol=atol, equal_nan=True):
        return ""
    with np.errstate(all="ignore"):
        return f"largest difference {np.nanmax(abs(one - other)):.3g}"


def main(prefixes: list[str]) -> None:
    """Run the cases whose name begins with one of the prefixes; print what fails."""
    from tests.linalg.harness import evaluate

    passed = 0
    chosen = {n: c for n, c in cases().items() if n.startswith(tuple(prefixes))}
    for name, case in chosen.items():
        try:
            wrong = run(case, evaluate)
        except Exception as error:  # noqa: BLE001 - a tool for the eye: show anything
            wrong = f"{type(error).__name__}: {str(error)[:150]!r}"
        passed += not wrong
        if wrong:
            print(f"{name}: {wrong}", flush=True)
    print(f"{passed} of {len(chosen)} pass")


if __name__ == "__main__":
    main([f"test_{word}" for word in sys.argv[1:]])
