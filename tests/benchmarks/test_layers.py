"""Convolutions drawn from networks: what is known of them, a tiny run."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from benchmarks import layers
from benchmarks.layers import Layer, known_layers
from benchmarks.systems import Measured, Task
from nanoloom.target import by_name
from nanoloom.target.peaks import Peaks, Rate
from nanoloom_papers.reproduce.roofline import Limits

SMALL = Layer("none", 6, 9, 7, 4, (3, 1), (2, 1), (1, 0), (1, 1), 2)


def test_a_hundred_distinct_ones_of_all_kinds() -> None:
    every = known_layers()
    assert len(every) == len({layer.sizes for layer in every}) == 100
    kinds = [layer.kind for layer in every]
    assert {kind: kinds.count(kind) for kind in kinds} == dict.fromkeys(kinds, 20)
    assert set(kinds) == {"dense", "depthwise", "first", "grouped", "pointwise"}


def test_those_of_three_networks() -> None:
    every = known_layers(layers.NETWORKS)
    assert len(every) == len({layer.sizes for layer in every})
    networks = {layer.network for layer in every}
    assert networks == {"resnet50", "vgg16", "mobilenet_v2"}
    given = layers.parse(["--networks", "--only", "first"])
    assert {layer.network for layer in layers.chosen(given)} == networks


def test_the_model_is_the_layer() -> None:
    model = layers.model_of(SMALL)
    onnx.checker.check_model(model, full_check=True)
    x = np.random.default_rng(1).standard_normal((1, 6, 9, 7), np.float32)
    (made,) = ReferenceEvaluator(model).run(None, {"x": x})
    assert np.asarray(made).shape == (1, 4, *SMALL.result) == (1, 4, 5, 7)
    assert SMALL.flops == 2 * 4 * 5 * 7 * 3 * 3
    assert SMALL.bytes == 4 * (6 * 9 * 7 + 4 * 3 * 3 + 4 * 5 * 7)
    assert (SMALL.kind, str(SMALL)) == ("grouped", "6x9x7 4 3x1 stride 2 groups 2")


def test_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "layers.json"
    layers.main(["--quick", "--against", "onnxruntime", "--json", str(out)])
    rows = json.loads(out.read_text())
    assert len(rows) == 2 and all("nanoloom" in row["median_seconds"] for row in rows)
    for row in rows:
        ours = sum(ns for _, ns in row["steps_nanoseconds"]) / 1e9
        assert 0 < row["kernel_seconds"] <= ours
        assert row["peak_gflops"] > 0
    assert "convolutions drawn from networks" in capsys.readouterr().out


def test_the_kernel_is_no_conversion() -> None:
    steps = [("Conv_0", 2), ("Conv_0/layout", 9), ("Conv_0", 7), ("Relu_1/layout", 8)]
    measured = Measured(Task("one", Path("one.onnx"), {}), 1, steps=steps)
    limits = Limits(by_name("x86-64-v3"), 1, Peaks("x86-64-v3", 1, ()), 1.0)
    made = layers.Row(SMALL, measured, limits)
    assert made.kernel == 7e-9


@pytest.mark.parametrize("peak", [1.0, 1e6, None])
def test_the_limit_is_of_the_peak_of_the_same_minute(peak: float | None) -> None:
    """Else of the one that was measured by itself; or of the cache's bandwidth."""
    measured = Measured(Task("one", Path("one.onnx"), {}), 1, peak=peak)
    rates = (Rate("f32", 1, 2.0, 2.0), Rate("l2", 1, 4.0, 4.0))
    limits = Limits(by_name("x86-64-v3"), 1, Peaks("x86-64-v3", 1, rates), 1.0)
    made = layers.Row(SMALL, measured, limits)
    products, moving = SMALL.flops / (peak or 2.0), SMALL.bytes / 4.0
    assert made.limit == pytest.approx(max(products, moving) / 1e9)
    assert (made.limit > moving / 1e9) == (peak != 1e6)
