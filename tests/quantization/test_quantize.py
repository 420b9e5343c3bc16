"""Quantized models: what the report says is so, here and in ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import onnx_ir
import pytest

import nanoloom
from nanoloom.cache import Cache
from nanoloom.compiler import partition_model
from nanoloom.frontend.onnx import load
from nanoloom.frontend.symbolic_dims import bind, dims_from_inputs
from nanoloom.inspect.differences import compare
from nanoloom.inspect.references import disturbed, open_reference, save
from nanoloom.options import CompileOptions
from nanoloom.quantization.quantize import Quantized
from nanoloom.quantization.report import FLOAT_RESULT, FLOATS, INTEGERS
from nanoloom.report import Report
from nanoloom.target.cached_host import host
from tests.quantization import models

Make = Callable[[], onnx.ModelProto]
SHAPES = {"conv_net": (2, 3, 9, 9), "block": (2, 7, 32), "outlier": (4, 16)}
MAKE: dict[str, Make] = {
    "conv_net": models.conv_net,
    "block": models.block,
    "outlier": models.outlier,
}


@dataclass(frozen=True)
class Case:
    """A model before and after."""

    floats: onnx.ModelProto
    quantized: Quantized
    samples: list[dict[str, np.ndarray]]


@pytest.fixture(scope="module")
def cases() -> dict[str, Case]:
    found: dict[str, Case] = {}
    for name, make in MAKE.items():
        samples = models.samples(SHAPES[name])
        found[name] = Case(make(), nanoloom.quantize(make(), samples), samples)
    return found


def kernels_of(model: onnx_ir.Model, arrays: dict[str, np.ndarray]) -> list[str]:
    bound = load(model)
    bound = bind(bound, dims_from_inputs(bound, arrays))
    options = CompileOptions(host(Cache.of(None)))
    return [*partition_model(bound, options, Report()).kernels]


def computed(case: Case) -> dict[str, str]:
    return {layer.node: layer.computed for layer in case.quantized.report.layers}


@pytest.mark.drawn(one_in=2)
@pytest.mark.parametrize("name", MAKE)
def test_here_and_in_onnx_runtime_alike(
    cases: dict[str, Case], name: str, tmp_path: Path
) -> None:
    """Within what rounding errors alone may change, which zeros are not."""
    case = cases[name]
    arrays = models.samples(SHAPES[name], 1, seed=7)[0]
    ours = nanoloom.compile(case.quantized.model)(arrays)["y"]
    model = case.quantized.model
    bound = bind(load(model), dims_from_inputs(load(model), arrays))
    theirs = open_reference("ort", save(model, tmp_path), 1)(arrays)[0]
    others = disturbed("ort", bound, tmp_path, 1, arrays)
    several = [other[0] for other in others]
    found = compare("y", ours, theirs, several)
    assert found.passed, found
    assert found.proves and not compare("y", 0 * ours, theirs, several).passed


def test_all_of_a_convolutional_network_is_in_integers(cases: dict[str, Case]) -> None:
    case = cases["conv_net"]
    assert computed(case) == {
        "first": INTEGERS,
        "second": INTEGERS,
        "third": INTEGERS,
        "sum": INTEGERS,
        "pool": INTEGERS,
        "last": FLOAT_RESULT,  # it is the model's
    }
    names = kernels_of(case.quantized.model, case.samples[0])
    products = [name for name in names if name.startswith(("contraction", "reduction"))]
    assert len(products) == 5
    assert all("_i8_" in name for name in products), names


def test_a_layer_in_floats_has_another_kernel() -> None:
    """What the test above looks for is there to be seen."""
    samples = models.samples(SHAPES["conv_net"])
    made = nanoloom.quantize(models.conv_net(), samples, keep_float=["second"])
    rows = {x.node: x for x in made.report.layers}
    assert rows["second"].computed == FLOATS
    assert rows["second"].reason == "--keep-float names it"
    names = kernels_of(made.model, samples[0])
    assert any(n.startswith("contraction_f32") for n in names), names


def test_a_block_of_a_transformer(cases: dict[str, Case]) -> None:
    """Products with weights are of integers; softmax and residuals are not."""
    case = cases["block"]
    weighed = {"query", "key", "value", "out", "down"}
    assert computed(case) == {
        **dict.fromkeys(weighed, FLOAT_RESULT),
        "up": INTEGERS,
        "scores": FLOATS,
        "context": FLOATS,
    }
    names = kernels_of(case.quantized.model, case.samples[0])
    products = sorted(n.split("_")[1] for n in names if n.startswith("contraction"))
    # Two products of activations; those of weights are of few kinds.
    assert products.count("f32") <= 2 and products.count("i8") >= 3, names


def test_a_bad_layer_stays_in_floats(cases: dict[str, Case]) -> None:
    case = cases["outlier"]
    rows = {x.node: x for x in case.quantized.report.layers}
    assert [n for n, x in rows.items() if x.computed == FLOATS] == ["second"]
    assert rows["second"].error is not None and rows["second"].error > 0.5
    assert "the outputs would be beyond the limit" in rows["second"].reason
    assert case.quantized.report.outputs["y"] < 0.1
    loose = nanoloom.quantize(models.outlier(), case.samples, max_error=10)
    assert all(x.computed != FLOATS for x in loose.report.layers)
    assert loose.report.outputs["y"] > 0.1  # it would have been wrong


@pytest.mark.drawn(one_in=2)
@pytest.mark.parametrize("name", MAKE)
def test_the_error_of_the_output_is_that_of_programs(
    cases: dict[str, Case], name: str
) -> None:
    case = cases[name]
    floats = nanoloom.compile(case.floats)
    quantized = nanoloom.compile(case.quantized.model)
    error = size = 0.0
    for sample in case.samples:
        right = floats(sample)["y"].astype(np.float64)
        error += np.square(quantized(sample)["y"] - right).sum()
        size += np.square(right).sum()
    told = case.quantized.report.outputs["y"]
    # A number that f32 rounds to the other side of a tie is another step, rarely.
    assert np.sqrt(error / size) == pytest.approx(told, rel=0.05)


def in_steps(x: np.ndarray, least: float, most: float) -> np.ndarray:
    """Rounded to 255 steps between two numbers, in float64."""
    low, high = min(least, 0.0), max(most, 0.0)
    scale = np.float64(np.float32((high - low) / 255))
    zero = np.rint(-low / scale)
    return (np.clip(np.rint(x / scale) + zero, 0, 255) - zero) * scale


def test_the_error_of_each_layer_is_that_of_float64() -> None:
    """relu(x w1 + b1) w2 + b2: each layer by itself, on exact numbers."""
    text = """g (float[3, 11] x) => (float[3, 5] y) {
        [one] a = Gemm(x, w1, b1) [relu] r = Relu(a) [two] y = Gemm(r, w2, b2) }"""
    shapes = {"w1": (11, 9), "b1": (9,), "w2": (9, 5), "b2": (5,)}
    weights = models.drawn(shapes, seed=3)
    samples = models.samples((3, 11), 5)
    model = models.with_weights(text, weights)
    report = nanoloom.quantize(model, samples, max_error=1).report
    w = {k: v.astype(np.float64) for k, v in weights.items()}
    whole = {}
    for k in ("w1", "w2"):
        scale = (np.abs(weights[k]).max(axis=0) / 127).astype(np.float32)
        whole[k] = np.rint(w[k] / scale) * scale
    x = np.concatenate([s["x"] for s in samples]).astype(np.float64)
    r = np.maximum(x @ w["w1"] + w["b1"], 0)
    y = r @ w["w2"] + w["b2"]
    given = in_steps(x, x.min(), x.max())
    first = np.maximum(given @ whole["w1"] + w["b1"], 0)
    wrong = {
        "one": in_steps(first, r.min(), r.max()) - r,
        "two": in_steps(r, r.min(), r.max()) @ whole["w2"] + w["b2"] - y,
    }
    right = {"one": r, "two": y}
    for layer in report.layers:
        name = layer.node
        own = np.linalg.norm(wrong[name]) / np.linalg.norm(right[name])
        assert layer.error == pytest.approx(own, rel=0.02), name
        assert own > 1e-3


def test_weights_alone(tmp_path: Path) -> None:
    """In blocks of 16: here as in ONNX Runtime, and as exact as 8 bits are."""
    samples = models.samples(SHAPES["block"])
    arrays = samples[0]
    errors = {}
    for bits in (4, 8):
        made = nanoloom.quantize(
            models.block(), samples, weights=bits, block=16, max_error=1
        )
        kinds = [x.computed for x in made.report.layers]
        assert kinds.count(f"weights of {bits} bits") == 6
        assert made.report.bytes < made.report.float_bytes * (
            0.32 if bits == 4 else 0.4
        )
        ours = nanoloom.compile(made.model)(arrays)["y"]
        theirs = open_reference("ort", save(made.model, tmp_path), 1)(arrays)[0]
        size = np.abs(theirs).max()
        assert np.abs(ours - theirs).max() < 1e-4 * size
        errors[bits] = made.report.outputs["y"]
    assert 8 < errors[4] / errors[8] < 40  # 17 for a scale of 7 steps and one of 127


def test_weights_of_gemm_and_without_samples() -> None:
    """A Gemm is a product and a bias; nothing is compared."""
    made = nanoloom.quantize(models.outlier(), weights=8)
    assert [x.computed for x in made.report.layers] == ["weights of 8 bits"] * 3
    assert made.report.outputs == {} and made.report.samples == 0
    sample = models.samples((4, 16), 1)[0]
    right = nanoloom.compile(models.outlier())(sample)["y"]
    assert np.abs(nanoloom.compile(made.model)(sample)["y"] - right).max() > 0


@pytest.mark.parametrize("method", ["entropy", "percentile"])
def test_other_calibrations(method: str) -> None:
    samples = models.samples(SHAPES["conv_net"])
    made = nanoloom.quantize(
        models.conv_net(), samples, calibration=method, max_error=0.5
    )
    assert 0 < made.report.outputs["y"] < 0.5
    assert made.report.quantized


def test_several_inputs_and_outputs_of_integers() -> None:
    text = """g (float[N, 8] x, float[N, 8] z) => (float[N, 6] y, int64[N] best) {
        [sum] s = Add(x, z) [product] y = MatMul(s, w)
        best = ArgMax<axis = 1, keepdims = 0>(y) }"""
    model = models.with_weights(text, models.drawn({"w": (8, 6)}))
    rows = [
        {**a, **b}
        for a, b in zip(
            models.samples((5, 8)),
            models.samples((5, 8), seed=2, name="z"),
            strict=True,
        )
    ]
    report = nanoloom.quantize(model, rows, max_error=0.5).report
    assert set(report.outputs) == {"y", "best"}
    assert report.outputs["best"] < 0.3  # the part that differs


def test_a_large_weight_is_written_beside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nanoloom.inspect import references
    from nanoloom.quantization import prepare, written_model

    for module in (references, prepare, written_model):
        monkeypatch.setattr(module, "LARGE", 64)
    samples = models.samples(SHAPES["block"])
    onnx.save(
        models.block(), tmp_path / "m.onnx", save_as_external_data=True,
        location="m.data", size_threshold=0,
    )  # fmt: skip
    made = nanoloom.quantize(tmp_path / "m.onnx", samples)
    made.save(tmp_path / "q.onnx")
    assert (tmp_path / "q.onnx.data").stat().st_size > 8000
    again = nanoloom.compile(tmp_path / "q.onnx")(samples[0])["y"]
    assert (again == nanoloom.compile(made.model)(samples[0])["y"]).all()
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"m.onnx", "m.data", "q.onnx", "q.onnx.data"}


def test_models_of_old_opsets() -> None:
    """Scales for channels came with opset 13."""
    text = "g (float[2, 8] x) => (float[2, 6] y) { [p] y = MatMul(x, w) }"
    model = models.with_weights(text, models.drawn({"w": (8, 6)}), opset=11)
    made = nanoloom.quantize(model, models.samples((2, 8)))
    assert made.model.opset_imports[""] >= 13
    assert made.report.layers[0].computed == FLOAT_RESULT


def test_times() -> None:
    samples = models.samples(SHAPES["conv_net"], 2)
    report = nanoloom.quantize(models.conv_net(), samples, times=True, threads=1).report
    assert report.seconds and report.float_seconds
    assert all(x.seconds and x.float_seconds for x in report.layers)
