"""Quantized models, as ONNX Runtime writes them, run in integers and agree with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir
import onnxruntime
import pytest
from numpy.typing import NDArray

import nanoloom
from benchmarks.models.quantized import FORMS, parts, quantize
from benchmarks.models.table import MODELS, seeded_inputs
from nanoloom.graph.quantization import DOMAIN
from nanoloom.graph.stage import optimize
from nanoloom.linalg.operators import OPERATORS

SMALL = Path(__file__).parents[1] / "models"
FLOAT = SMALL / "bge-small_opset17_torchscript.onnx"
NAMES = [f"bge-small{suffix}" for suffix in FORMS]
WEIGHTS = 12  # products with a constant in two layers
# Two evaluations of one quantized model round a few values near a tie to different
# integers.  One such step changes the result far less than the steps of all values
# together do, which is how far the quantized model is from the float one.
SHARE = 0.25

Arrays = dict[str, NDArray[Any]]


# Where a CPU has no dot products of bytes, ONNX Runtime's sums of pairs saturate, but
# not with this: it multiplies without signs then.
EXACT = "session.x64quantprecision"


def peer(path: Path, inputs: Arrays) -> NDArray[Any]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.add_session_config_entry(EXACT, "1")
    session = onnxruntime.InferenceSession(str(path), options)
    return np.asarray(session.run(None, inputs)[0])


def distance(one: NDArray[Any], other: NDArray[Any]) -> float:
    return float(np.sqrt(np.mean((one.astype(np.float64) - other) ** 2)))


@pytest.mark.drawn(one_in=2)
@pytest.mark.parametrize("name", NAMES)
def test_agrees_with_onnx_runtime(name: str, tmp_path: Path) -> None:
    path = quantize(FLOAT, name, tmp_path / "q.onnx", small=True)
    inputs = seeded_inputs("bge-small", small=True, seed=9)
    reference, unquantized = peer(path, inputs), peer(FLOAT, inputs)
    steps = distance(reference, unquantized)
    assert steps > 0
    (got,) = nanoloom.compile(path, threads=2)(inputs).values()
    assert got.shape == reference.shape
    assert distance(got, reference) <= SHARE * steps
    assert not distance(unquantized, reference) <= SHARE * steps
    assert not distance(0 * got, reference) <= SHARE * steps


@pytest.mark.parametrize("name", NAMES)
def test_products_with_weights_are_of_integers(name: str, tmp_path: Path) -> None:
    path = quantize(FLOAT, name, tmp_path / "q.onnx", small=True)
    graph = optimize(onnx_ir.load(path), OPERATORS.keys()).graph
    dynamic = "MatMulInteger" if name.endswith("-dynamic") else "MatMul"
    kinds = [(n.domain if dynamic == "MatMul" else "", n.op_type) for n in graph]
    own = DOMAIN if dynamic == "MatMul" else ""
    assert kinds.count((own, dynamic)) == WEIGHTS


def test_scales_are_by_column_or_not(tmp_path: Path) -> None:
    shapes: dict[str, set[int]] = {}
    for name in NAMES[:2]:
        path = quantize(FLOAT, name, tmp_path / f"{name}.onnx", small=True)
        held = onnx.load(path).graph.initializer
        shapes[name] = {len(x.dims) for x in held if x.name.endswith("_scale")}
    assert shapes == {NAMES[0]: {0, 1}, NAMES[1]: {0}}


def test_names_have_a_float_model_and_a_form() -> None:
    assert parts("bge-small-int8-tensor") == ("bge-small", FORMS["-int8-tensor"])
    assert parts("bge-small") == ("bge-small", None)
    assert all(parts(name) == (name, None) for name in MODELS)
