"""nanoloom profile: times that add up, work that is counted, a timeline."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import nanoloom
from nanoloom.cli.failures import AT_FAULT, DONE
from nanoloom.cli.main import main
from nanoloom.explain.profile import profile, waiting
from nanoloom.explain.trace import trace
from nanoloom.runtime.slices import BEGIN, END, STEP, THREAD
from tests.cli import models

ROWS, DEPTH, COLUMNS = 9, 7, 5  # of models.DENSE


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return models.write(tmp_path, models.DENSE)


def test_times_and_work_of_layers(model: Path, tmp_path: Path) -> None:
    program = nanoloom.compile(model, cache=tmp_path / "cache", threads=1)
    random = np.random.default_rng(1)
    x = random.standard_normal((ROWS, DEPTH), np.float32)
    w = random.standard_normal((DEPTH, COLUMNS), np.float32)
    found = profile(program, {"x": x, "w": w}, runs=7)
    assert found.runs.shape == (7, len(found.names))
    assert (found.runs >= 0).all()
    assert [n for layer in found.layers for n in layer.steps] == [
        *range(len(found.names))
    ]
    assert all(x.low <= x.seconds <= x.high for x in found.layers)
    assert (np.diff(found.begins) > 0).all()
    least = 2 * ROWS * DEPTH * COLUMNS  # of the product alone
    operations = sum(layer.operations for layer in found.layers)
    assert least < operations < 3 * least
    read = 4 * (ROWS * DEPTH + DEPTH * COLUMNS + 2 * ROWS * COLUMNS)
    assert read <= sum(layer.bytes for layer in found.layers) < 3 * read


def test_what_threads_do(tmp_path: Path) -> None:
    """All tasks of all steps, by two threads that do not overlap themselves."""
    wide = models.write(tmp_path, models.DENSE)
    program = nanoloom.compile(wide, cache=tmp_path / "cache", threads=2)
    random = np.random.default_rng(2)
    x = random.standard_normal((40 * ROWS, DEPTH), np.float32)
    w = random.standard_normal((DEPTH, COLUMNS), np.float32)
    found = profile(program, {"x": x, "w": w}, runs=9)
    assert len(found.slices) == 9
    for rows, times in zip(found.slices, found.runs, strict=True):
        assert set(rows[:, STEP]) == set(range(len(found.names)))
        assert len(set(rows[:, THREAD])) <= 2
        assert (rows[:, BEGIN] >= 0).all() and (rows[:, END] >= rows[:, BEGIN]).all()
        assert rows[:, END].max() <= times.sum() + 1000
        for thread in set(rows[:, THREAD]):
            own = rows[rows[:, THREAD] == thread]
            own = own[np.argsort(own[:, BEGIN])]
            assert (own[1:, BEGIN] >= own[:-1, END]).all()
    assert all(x.waiting is not None and 0 <= x.waiting < 1 for x in found.layers)
    made = trace(found, "wide")["traceEvents"]
    lanes = {x["tid"] for x in made if x["ph"] == "X"}
    assert {1, 2} <= lanes <= {1, 2, 3}


def test_waiting_is_what_is_not_busy() -> None:
    """Of two steps: of the first both threads half of the time, of the second one."""
    times, busy = np.array([[100, 50], [200, 50]]), np.array([[100, 50], [200, 50]])
    assert waiting(times, busy, 2, (0,)) == waiting(times, busy, 2, (0, 1)) == 0.5
    assert waiting(times, busy * 2, 2, (1,)) == 0
    assert waiting(times, busy[:0], 2, (0,)) is None


def test_the_table(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["profile", str(model), "--dim", "batch=9", "--repeat", "5", "-t", "1"]
    assert main(words) == DONE
    made = capsys.readouterr().out
    assert "a run (median of 5 runs, 1 thread)" in made
    assert "Gop/s" in made
    assert "outside of steps: " in made


def test_a_timeline(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Slices of a run lie one behind the other, within the run's own."""
    path = model.parent / "trace.json"
    words = ["profile", str(model), "--dim", "batch=9", "--repeat", "3", "--json"]
    assert main([*words, "--trace", str(path)]) == DONE
    said = json.loads(capsys.readouterr().out)
    events = json.loads(path.read_text())["traceEvents"]
    slices = [x for x in events if x["ph"] == "X" and x["tid"] == 1]
    runs = [x for x in slices if x["name"].startswith("run ")]
    steps = [x for x in slices if x not in runs]
    assert said["runs"] == len(runs) == 3
    assert len(steps) == 3 * sum(len(x["steps"]) for x in said["layers"])
    for run in runs:
        inside = [x for x in steps if run["ts"] <= x["ts"] < run["ts"] + run["dur"]]
        total = sum(x["dur"] for x in inside)
        assert total == pytest.approx(run["dur"], rel=1e-6, abs=1e-3)


def test_a_trace_needs_its_ending(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["profile", str(model), "--trace", "trace.txt"]) != DONE
    assert "trace.txt does not end in .json or" in capsys.readouterr().err


def test_a_model_that_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", "none.onnx"]) == AT_FAULT
    assert "none.onnx: no such model file" in capsys.readouterr().err


def test_files_beside_the_table(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = model.parent
    words = ["profile", str(model), "--dim", "batch=9", "--repeat", "3"]
    for option, name in (
        ("--html", "page.html"),
        ("--overlay", "nodes.json"),
        ("--annotate", "copy.onnx"),
        ("--trace", "trace.pftrace"),
    ):
        words += [option, str(folder / name)]
    assert main(words) == DONE
    assert "roof" in capsys.readouterr().out
    page = (folder / "page.html").read_text("utf-8")
    assert 'id="layers"' in page and 'id="nodes"' in page
    assert json.loads((folder / "nodes.json").read_text())["results"]
    assert (folder / "copy.onnx").read_bytes() != model.read_bytes()
    assert (folder / "trace.pftrace").stat().st_size > 0


def test_one_file_is_not_for_two(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(model.parent / "both.json")
    assert main(["profile", str(model), "--trace", file, "--overlay", file]) != DONE
    assert "is for --trace and for --overlay" in capsys.readouterr().err


def test_the_model_itself_is_not_annotated(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["profile", str(model), "--annotate", str(model)]) != DONE
    assert "name a copy" in capsys.readouterr().err
