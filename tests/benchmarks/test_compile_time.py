"""The benchmark of compile times: a small model, its processes and stages."""

from __future__ import annotations

import json
from pathlib import Path

import onnx.parser
import pytest

from benchmarks import compile_time

TEXT = """<ir_version: 10, opset_import: ["" : 21]>
    g (float[n,3] x) => (float[n,3] y) { y = Relu(x) }"""


def test_models_by_file_with_a_number_and_for_all_sizes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A number for a name that a model does not have is left out."""
    model, rows = tmp_path / "small.onnx", tmp_path / "rows.json"
    onnx.save(onnx.parser.parse_model(TEXT), model)
    for dims in ("n=4,other=2", ""):
        words = ["--models", str(model), "--json", str(rows), "--dims", dims]
        compile_time.main(words)
        found = json.loads(rows.read_text())["small"]
        assert found["kernels"] == 1
        assert found["own"] > 0 and found["wall"] > 0
        assert {"graph", "linalg", "kernels", "object"} <= set(found["stages"])
        assert ("sizes" in found["stages"]) == (dims == "")
        assert "small" in capsys.readouterr().out


def test_what_is_not_known(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        compile_time.parse(["--models", "resnet50,nothing"])
    said = capsys.readouterr().err
    assert "no model is named nothing; a file ends in .onnx" in said
    with pytest.raises(SystemExit):
        compile_time.parse(["--dims", "batch"])
    assert "--dims: NAME=N, by commas" in capsys.readouterr().err
