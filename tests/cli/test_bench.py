"""nanoloom bench: the table, its peers, its JSON and its picture (times are not)."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from nanoloom.cli import bench, bench_table
from nanoloom.inspect.timing import Times
from tests.cli import models
from tests.cli.conftest import Command
from tests.cli.test_refusals import refused

WORDS = ("-d", "batch=3", "--repeat", "2", "--threads", "1")


@pytest.fixture
def dense(tmp_path: Path) -> Path:
    return models.write(tmp_path, models.DENSE)


def test_one_table(dense: Path, nanoloom: Command) -> None:
    said = nanoloom("bench", dense, *WORDS, "--against", "ort")
    assert said.status == 0
    assert "model.onnx: 1 thread, median of 2 repetitions" in said.out
    assert "nanoloom 0." in said.out and "ONNX Runtime 1." in said.out
    assert "measured peak of 1 thread:" in said.out
    assert "inputs x, w are random" in said.err


def test_json(dense: Path, nanoloom: Command) -> None:
    said = nanoloom("bench", dense, *WORDS, "--against", "ort", "--json")
    found = json.loads(said.out)
    assert found["repetitions"] == 2 and found["threads"] == 1
    assert found["contraction_flops"] == 2 * 3 * 7 * 5
    assert found["peak_gflops"] > 0 and found["absent"] == {}
    ours, theirs = found["results"]
    assert ours["nanoloom_speedup"] == 1 and ours["largest_difference"] is None
    assert theirs["largest_difference"] < 1e-5
    ratio = theirs["median_seconds"] / ours["median_seconds"]
    assert theirs["nanoloom_speedup"] == pytest.approx(ratio)
    rate = 210 / ours["median_seconds"] / 1e9
    assert ours["gflops"] == pytest.approx(rate)


def test_peers_that_are_not_there_are_named(
    dense: Path, nanoloom: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("onnxruntime", "openvino", "torch"):
        monkeypatch.setitem(sys.modules, name, None)
    said = nanoloom("bench", dense, *WORDS, "--against", "ort,openvino,torch")
    assert said.status == 0
    for name in ("ONNX Runtime", "OpenVINO", "PyTorch"):
        assert f"not measured: {name} is not installed; pip install" in said.out
    empty = nanoloom("bench", dense, *WORDS, "--against", "ort", "--json")
    found = json.loads(empty.out)
    assert "not installed" in found["absent"]["ort"] and len(found["results"]) == 1


def test_a_peer_that_does_not_run_the_model(tmp_path: Path, nanoloom: Command) -> None:
    text = "g (bfloat16[4] x) => (bfloat16[4] y) { y = Sin(x) }"
    model = models.write(tmp_path, text, opset=22)
    said = nanoloom("bench", model, "--repeat", "1", "--against", "ort")
    assert said.status == 0 and "not measured: ONNX Runtime" in said.out


def test_a_model_without_contractions(tmp_path: Path, nanoloom: Command) -> None:
    model = models.write(tmp_path, models.RELU)
    said = nanoloom("bench", model, *WORDS, "--against", "ort")
    assert said.status == 0 and "GFLOP a run" not in said.out


def test_a_picture(tmp_path: Path) -> None:
    entries = [
        bench_table.Entry("nanoloom 1", Times((1e-3, 2e-3)), None),
        bench_table.Entry("other", Times((3e-3,)), 1e-7),
    ]
    made = bench_table.BenchTable(tmp_path / "m.onnx", 2, None, 100.0, entries)
    bench_table.draw(made, tmp_path / "bars.png")
    assert (tmp_path / "bars.png").read_bytes().startswith(b"\x89PNG")
    bench_table.draw(made, tmp_path / "bars.svg")
    assert "nanoloom" in (tmp_path / "bars.svg").read_text()


def test_pictures_that_cannot_be(
    tmp_path: Path, dense: Path, nanoloom: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("bench", dense, *WORDS, "--plot")
    refused(nanoloom(*words, tmp_path / "x.gif"), "x.gif", ".png", status=2)
    refused(nanoloom(*words, tmp_path / "no" / "x.png"), "no folder")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    refused(nanoloom(*words, tmp_path / "x.png"), "--plot needs matplotlib")


@pytest.mark.parametrize("words", [("--against", "ort,tvm"), ("--repeat", "0")])
def test_wrong_usage(dense: Path, nanoloom: Command, words: tuple[str, ...]) -> None:
    refused(nanoloom("bench", dense, *words), words[0], status=2)


def test_the_largest_difference() -> None:
    one = np.array([1.0, np.nan, np.inf], np.float32)
    assert bench.largest_difference([one], [one]) == 0
    moved = one + np.array([0.5, 0, 0], np.float32)
    assert bench.largest_difference([one], [moved]) == 0.5
    assert bench.largest_difference([one], [np.zeros(3)]) == np.inf
    assert bench.largest_difference([one], [one[:2]]) == np.inf
    assert bench.largest_difference([one], []) == np.inf
