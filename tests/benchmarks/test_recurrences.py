"""The benchmark of recurrent layers, tiny."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from onnx.reference import ReferenceEvaluator

from benchmarks import recurrences


def test_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.json"
    words = ("--quick", "--against", "onnxruntime", "--threads", "1")
    recurrences.main([*words, "--json", str(out), "--folder", str(tmp_path)])
    assert "GRU 7, 3 steps" in capsys.readouterr().out
    (made,) = json.loads(out.read_text("utf-8"))
    assert set(made["median_seconds"]) == {"nanoloom", "onnxruntime"}
    assert made["differences"]["onnxruntime"] < 1e-5


def test_layers_run_one_behind_the_other() -> None:
    layers = recurrences.Layers("LSTM", 5, 4, count=2, both=True)
    (y,) = ReferenceEvaluator(layers.model()).run(None, layers.inputs())
    assert y.shape == (4, 1, 10) and y.std() > 0.01
