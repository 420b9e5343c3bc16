"""ONNX's node tests: loading a case, running it, comparing with its answer."""

from __future__ import annotations

import pickle
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.case.test_case import TestCase
from onnx.backend.test.loader import load_model_tests

from nanoloom.cache import Cache, digest

KEPT = Cache(Path(__file__).parents[2] / ".pytest_cache" / "node_tests", 1 << 28)
RANDOM = frozenset({"Bernoulli", "RandomUniformLike"})
# Where all the terms of a sum cancel, the answers hold their own f32 rounding noise.
TRANSFORMS = frozenset({"DFT", "STFT"})
Evaluate = Callable[[onnx.ModelProto, Mapping[str, np.ndarray]], list[np.ndarray]]


@cache
def cases() -> dict[str, TestCase]:
    """Every node test by its name.

    ONNX computes all answers to tell even the names, for seconds in every process that
    collects tests: they are kept.
    """
    versions = [x.__version__ for x in (onnx, np, ml_dtypes)]
    name = digest.of("node tests", sys.version, *versions)
    kept = KEPT.get(name)
    if kept is not None:
        return pickle.loads(kept)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {case.name: case for case in load_model_tests(kind="node")}
    KEPT.put(name, pickle.dumps(found))
    return found


def as_array(value: object) -> np.ndarray:
    """A tensor as an array; sequences and optionals as one that no program takes."""
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    if value is None or isinstance(value, list):
        return np.empty(0, dtype=object)
    return np.asarray(value)


def as_given(value: object) -> Any:
    """An input: an array, or a list of them."""
    if isinstance(value, list):
        return [as_array(one) for one in value]
    return None if value is None else as_array(value)


def holds(model: onnx.ModelProto, operators: frozenset[str]) -> bool:
    return any(node.op_type in operators for node in model.graph.node)


def is_random(model: onnx.ModelProto) -> bool:
    """Whether the answer is one of many: only its type, shape and values are known."""
    return holds(model, RANDOM)


def run(case: TestCase, evaluate: Evaluate) -> str:
    """Run one case: "" if every output is right, else one sentence.

    Right means: the element type and shape of the expected output, integers and bool
    exact, floats within the case's own tolerance.
    """
    model = case.model
    assert model is not None and case.data_sets is not None
    initial = {x.name for x in model.graph.initializer}
    names = [x.name for x in model.graph.input if x.name not in initial]
    compare = outside if is_random(model) else difference
    for inputs, expected in case.data_sets:
        feeds = {n: as_given(a) for n, a in zip(names, inputs, strict=False)}
        got = evaluate(model, feeds)
        for i, (one, other) in enumerate(each(got, expected)):
            wanted = as_array(other)
            atol = case.atol
            if holds(model, TRANSFORMS):
                atol = max(atol, noise(wanted))
            wrong = compare(one, wanted, case.rtol, atol)
            if wrong:
                return f"output {i}: {wrong}"
    return ""


def each(
    got: Sequence[object], expected: Sequence[object]
) -> Iterator[tuple[np.ndarray, object]]:
    """Outputs and answers; of sequences each tensor."""
    for one, other in zip(got, expected, strict=True):
        if isinstance(one, list):
            assert isinstance(other, list)
            yield from zip(one, other, strict=True)
        else:
            assert isinstance(one, np.ndarray)
            yield one, other


def noise(wanted: np.ndarray) -> float:
    """One rounding of the largest element."""
    if wanted.dtype.kind != "f" or not wanted.size:
        return 0.0
    return float(abs(wanted).max() * np.finfo(wanted.dtype).eps)


def difference(got: np.ndarray, wanted: np.ndarray, rtol: float, atol: float) -> str:
    """What is wrong with an output, or "".

    A 16-bit float may be two units in the last place off, whatever the case says: the
    answers were rounded to it after every step.  (ONNX's own runner does the same for
    bfloat16.)
    """
    if wrong := mismatch(got, wanted):
        return wrong
    if got.dtype.kind in "iubO":
        return "" if (got == wanted).all() else f"{got.dtype} elements differ"
    if got.dtype.itemsize == 2:
        rtol = max(rtol, 2 * float(ml_dtypes.finfo(got.dtype).eps))
    one, other = got.astype(np.float64), wanted.astype(np.float64)
    if np.allclose(one, other, rtol=rtol, atol=atol, equal_nan=True):
        return ""
    with np.errstate(all="ignore"):
        return f"largest difference {np.nanmax(abs(one - other)):.3g}"


def outside(got: np.ndarray, wanted: np.ndarray, rtol: float, atol: float) -> str:
    """What is wrong with random draws of 0 and 1, or ""."""
    del rtol, atol
    if wrong := mismatch(got, wanted):
        return wrong
    return "" if np.isin(got, (0, 1)).all() else "neither 0 nor 1"


def mismatch(got: np.ndarray, wanted: np.ndarray) -> str:
    """How the shape or type of an output differs, or ""."""
    if got.shape != wanted.shape:
        return f"shape {got.shape}, expected {wanted.shape}"
    if got.dtype != wanted.dtype:
        return f"type {got.dtype}, expected {wanted.dtype}"
    return ""


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
