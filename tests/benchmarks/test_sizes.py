"""The benchmark of sizes, with a small model in place of a large one."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import onnx.parser
import pytest

from benchmarks import sizes
from benchmarks.models import seeded_inputs

MODELS = Path(__file__).parents[1] / "models"
EDGES = """
<ir_version: 10, opset_import: ["" : 20]>
edges (float[1, 1, 29, 37] x) => (float[1, 1, 15, 19] y)
<float[1, 1, 3, 3] w = {1, 2, 1, 0, 0, 0, -1, -2, -1}>
{
    y = Conv<pads = [1, 1, 1, 1], strides = [2, 2]>(x, w)
}
"""


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


def test_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both sides are open; the file of one size stays as it is."""
    path = tmp_path / "edges.onnx"
    onnx.save(onnx.parser.parse_model(EDGES), path)
    before = path.read_bytes()
    monkeypatch.setattr(sizes, "model_file", lambda *_: path)
    out = tmp_path / "out.json"
    words = ("--models", "edges-images", "--against", "onnxruntime", "--quick")
    sizes.main([*words, "--json", str(out), "--folder", str(tmp_path)])
    (made,) = json.loads(out.read_text("utf-8"))
    assert made["notes"] == ["compiled once for all sizes"]
    row = made["median_seconds"]["height=224, width=224"]
    assert set(row) == {"nanoloom", "own", "onnxruntime"} and min(row.values()) > 0
    assert path.read_bytes() == before


def test_sizes() -> None:
    lengths = sizes.sizes_of("bert-base", quick=False)
    assert [x["sequence"] for x in lengths] == list(sizes.LENGTHS)
    drawn = [x["sequence"] for x in sizes.sizes_of("bert-base", False, 40)]
    assert len({*drawn}) == 40 and drawn == sorted(drawn)
    assert min(drawn) >= sizes.LENGTHS[0] and max(drawn) <= sizes.LENGTHS[-1]
    assert [x["batch"] for x in sizes.sizes_of("resnet18", False)] == [1, 2, 4, 8]
    sides = sizes.sizes_of("unet-images", quick=True)
    assert sides == [{"height": 256, "width": 256}]
