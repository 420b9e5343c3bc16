"""The benchmark of sizes, with a small model in place of a large one."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import pytest

from benchmarks import sizes
from benchmarks.models import seeded_inputs

MODELS = Path(__file__).parents[1] / "models"


def test_a_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    small = MODELS / "mobilenet_v2_opset13_torchscript.onnx"
    monkeypatch.setattr(sizes, "model_file", lambda *_: small)
    drawn = functools.partial(seeded_inputs, small=True)
    monkeypatch.setattr(sizes, "seeded_inputs", drawn)
    out = tmp_path / "out.json"
    words = ("--models", "mobilenet_v2", "--against", "onnxruntime", "--quick")
    sizes.main([*words, "--json", str(out), "--folder", str(tmp_path)])
    assert "compiled once for all sizes" in capsys.readouterr().out
    (made,) = json.loads(out.read_text("utf-8"))
    row = made["median_seconds"]["batch=1"]
    assert set(row) == {"nanoloom", "own", "onnxruntime"} and min(row.values()) > 0


def test_sizes() -> None:
    lengths = sizes.sizes_of("bert-base", quick=False)
    assert [x["sequence"] for x in lengths] == list(sizes.LENGTHS)
    assert [x["batch"] for x in sizes.sizes_of("resnet18", False)] == [1, 2, 4, 8]
