"""Classical models beside ONNX Runtime."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import onnxruntime

import nanoloom
from tests.dynamic.compared import session
from tests.fuzz.cases import Bench, Finding, Outcome
from tests.fuzz.damage import beyond_rounding, close

Array = np.ndarray[Any, np.dtype[Any]]
FAR = 1e-3  # of the largest number: more than single precision loses in such models


def check_classical(seed: int, bench: Bench) -> Outcome:
    """Compile the export of a seed and compare; a refusal is a finding."""
    from tests.fuzz.classical.draw import NotExported, drawn

    bench.at("reference")
    try:
        case = drawn(np.random.default_rng([9, seed]))
    except NotExported as error:
        return Outcome("empty", Finding("refused", str(error)))
    path = bench.keep("classical", case.model, case.feeds)
    (bench.case / "estimator.txt").write_text(f"{case.name}\n")
    try:
        wanted = [plain(x) for x in session(case.model).run(None, dict(case.feeds))]
    except onnxruntime.capi.onnxruntime_pybind11_state.Fail as error:
        return Outcome("empty", Finding("refused", str(error)))
    bench.at("compile and run")
    try:
        with warnings.catch_warnings():  # ZipMap is left out, and said to be
            warnings.simplefilter("ignore")
            program = nanoloom.compile(path, threads=1, cache=bench.cache)
            made = program(dict(case.feeds))
    except nanoloom.Error as error:
        told = f"{case.name}: {type(error).__name__}: {error}"
        return Outcome("finding", Finding("foreign", told))
    bench.at("comparison")
    reason = differing(list(made.values()), wanted)
    if reason == "rounding":
        reason = beyond_rounding("ort", program, dict(case.feeds), made, wanted, bench)
    if reason:
        return Outcome("finding", Finding("difference", f"{case.name}: {reason}"))
    return Outcome("passed", None, [node.op_type for node in case.model.graph.node])


def plain(value: Any) -> Array:
    """An output of ONNX Runtime; maps of scores as [rows, classes]."""
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return np.array([list(row.values()) for row in value], np.float32)
    return np.asarray(value)


def differing(made: list[Array], wanted: list[Array]) -> str:
    """What is different; "rounding" for what may be that, "" for nothing."""
    found = ""
    for number, (one, other) in enumerate(zip(made, wanted, strict=True)):
        if one.shape != other.shape:
            return f"output {number}: {one.shape} where {other.shape} is wanted"
        if other.dtype.kind in "OUS":
            if one.tolist() != other.tolist():
                return f"output {number}: other words"
            continue
        if one.dtype != other.dtype:
            return f"output {number}: {one.dtype} where {other.dtype} is wanted"
        if close(one, other) or np.array_equal(one, other, equal_nan=True):
            continue
        if one.dtype.kind in "iub":
            return f"output {number}: {(one != other).sum()} other whole numbers"
        largest = float(np.nanmax(np.abs(other), initial=0))
        if not np.allclose(one, other, FAR, FAR * largest, equal_nan=True):
            off = np.nanmax(np.abs(one - other))
            return f"output {number}: off by {off:.3g} of {largest:.3g}"
        found = "rounding"
    return found
