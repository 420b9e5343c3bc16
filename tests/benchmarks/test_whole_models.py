"""The benchmark of whole models: a small one measured, tables and a picture."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import pictures, systems, whole_models
from benchmarks.models import seeded_inputs
from benchmarks.systems import Measured, Task
from nanoloom.errors import Error
from nanoloom.inspect.timing import Times
from nanoloom.target.host import host
from nanoloom.target.peaks import Peaks
from nanoloom_papers.reproduce.contenders import Company
from nanoloom_papers.reproduce.roofline import Limits
from nanoloom_papers.reproduce.timing import QUICK

MODELS = Path(__file__).parents[1] / "models"


def task(**words: object) -> Task:
    path = MODELS / "mlp1024_opset13_torchscript.onnx"
    inputs = seeded_inputs("mlp1024", small=True)
    return Task("mlp1024", path, inputs, **words)  # type: ignore[arg-type]


def measured(folder: Path, given: Task, peers: tuple[str, ...] = ()) -> Measured:
    job = systems.job_of(given, 1, folder, host(), folder / "cache")
    with Company(peers, folder) as company:
        return systems.measure(given, job, company, QUICK)


def test_a_model_and_a_peer(tmp_path: Path) -> None:
    made = measured(tmp_path, task(), ("onnxruntime",))
    assert list(made.times) == ["nanoloom", "onnxruntime"]
    assert made.differences["onnxruntime"] < 1e-5
    assert made.best_peer == "onnxruntime" and made.ratio is not None
    assert made.facts["seconds"] > 0
    assert made.steps and all(time > 0 for _, time in made.steps)


def test_wrong_results_are_not_timed(tmp_path: Path) -> None:
    made = measured(tmp_path, task(expected=[np.ones((29, 37), np.float32)]))
    assert made.times == {} and made.ratio is None
    assert "wrong result: off by" in made.absent["nanoloom"]


def test_differences() -> None:
    one = np.array([1.0, -4.0])
    assert systems.difference([one], [one]) == 0
    assert systems.difference([one + 1], [one]) == 0.25
    assert systems.difference([one * np.nan], [one]) == np.inf
    assert systems.difference([one], [one[:1]]) == np.inf
    assert systems.difference([], [one]) == np.inf


def rows() -> list[whole_models.Row]:
    times = {"nanoloom": Times((0.002,)), "openvino": Times((0.004,))}
    absent = {"onnxruntime": "ONNX Runtime: computes no bf16 on CPUs"}
    made = Measured(task(lowered=True), 1, times, {}, absent)
    sizes = {"file": 1.0, "peak": 2.0, "cached": 3.0}
    return [whole_models.Row(made, "bf16", 1.5, 0.25, sizes)]


def test_a_table() -> None:
    rates = Limits(host(), 1, Peaks("t", 1, ()), 1.0)
    found = whole_models.sheet(rows(), rates)
    cells = ("mlp1024", "bf16", "1", "2.00", "4.00", "", "0.50", "1.5", "0.25")
    assert found.rows == ((*cells, "1", "2", "3", "", ""),)
    assert "ONNX Runtime: computes no bf16 on CPUs (mlp1024)" in found.notes


def test_the_share_of_a_peers_memory() -> None:
    (row,) = rows()
    row.megabytes["peer"] = 4.0
    assert whole_models.line(row, ["nanoloom"])[-2:] == ("4", "0.75")


def test_a_peak_is_what_a_script_prints_last() -> None:
    assert whole_models.peak_of("print('warning'); print(2048)", []) == 2.0
    assert np.isnan(whole_models.peak_of("raise SystemExit(1)", []))


def test_a_picture() -> None:
    drawn = pictures.relative_times([each.measured for each in rows()])
    assert drawn.startswith(b"\x89PNG")


def test_cases() -> None:
    words = ["--models", "bge-small,bge-small-int8", "--precision", "f32,bf16"]
    found = whole_models.cases(whole_models.parse([*words, "--threads", "2"]))
    assert found == [
        ("bge-small", "f32", 2),
        ("bge-small", "bf16", 2),
        ("bge-small-int8", "f32", 2),
    ]


def test_unknown_models_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        whole_models.parse(["--models", "lenet"])
    assert "no model is named lenet" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["resnet18", "resnet18-int8"])
def test_files_that_cannot_be_written_without_torch(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in [m for m in sys.modules if m.startswith("benchmarks.models.export")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(Error, match=r"resnet18.* writing it needs PyTorch .*pip inst"):
        whole_models.model_file(name, tmp_path)
    assert not list(tmp_path.iterdir())
