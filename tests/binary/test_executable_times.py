"""What an executable says of its time: reports, and a timeline of steps and threads."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from nanoloom.cache import Cache
from tests.binary import test_executable as executable
from tests.binary.test_executable import run

inputs = executable.inputs


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory, linking: Cache) -> Path:
    return executable.write(tmp_path_factory.mktemp("timed"), linking)


def test_times_and_layers(model: Path, inputs: tuple[Path, Path]) -> None:
    done = run(model, *inputs, "--repeat", 3, "--profile", "-o", "/dev/null")
    times, head, *layers = done.stdout.splitlines()
    found = re.fullmatch(r"3 runs: median (\d+\.\d+) ms, least (\d+\.\d+) ms", times)
    assert found and float(found[1]) >= float(found[2]) > 0  # of a few microseconds
    assert all(float(line.split()[0]) > 0 for line in layers[:4])
    assert head.split() == ["ms", "spread%", "%", "waiting%", "layer"]
    names = [line.split(maxsplit=4)[4] for line in layers]
    wanted = ["layer/add", "layer/mul", "layer/total", "all layers"]
    assert names[:4] == wanted


def test_a_timeline_of_the_last_runs(
    model: Path, inputs: tuple[Path, Path], tmp_path: Path
) -> None:
    """Of more runs than are kept; steps lie one behind the other in theirs."""
    file = tmp_path / "trace.json"
    words = ["--repeat", 1003, "--trace", file, "-o", "/dev/null", "--threads", 1]
    assert run(model, *inputs, *words).returncode == 0
    events = json.loads(file.read_text())["traceEvents"]
    assert events[0]["args"]["name"] == 'tiny "one"'
    slices = [x for x in events if x["ph"] == "X"]
    runs = [x for x in slices if x["name"].startswith("run ")]
    assert [x["name"] for x in runs] == [f"run {n}" for n in range(3, 1003)]
    assert runs[0]["ts"] > 0 and runs == sorted(runs, key=lambda x: x["ts"])
    steps = slices[1 : len(slices) // 1000]
    assert {x["name"] for x in steps} >= {"layer/add", "layer/mul", "layer/total"}
    total = sum(x["dur"] for x in steps)
    assert total == pytest.approx(runs[0]["dur"], abs=1e-3 * len(steps))


def test_what_threads_did(
    model: Path, inputs: tuple[Path, Path], tmp_path: Path
) -> None:
    """A lane each, of the last sixteen runs; waiting is a part of their time."""
    file = tmp_path / "trace.json"
    words = ["--repeat", 20, "--trace", file, "-o", "/dev/null", "--threads", 2]
    done = run(model, *inputs, *words, "--profile")
    waiting = [float(x.split()[3]) for x in done.stdout.splitlines()[2:6]]
    assert all(0 <= part < 100 for part in waiting)
    events = json.loads(file.read_text())["traceEvents"]
    lanes = {x["args"]["name"]: x["tid"] for x in events if x["name"] == "thread_name"}
    assert {"steps, 2 threads", "thread 1"} <= set(lanes) <= {
        "steps, 2 threads", "thread 1", "thread 2"
    }  # fmt: skip
    slices = [x for x in events if x["ph"] == "X"]
    runs = [x for x in slices if x["name"].startswith("run ")][4:]
    tasks = [x for x in slices if x["tid"] > lanes["steps, 2 threads"]]
    for each in runs:
        end = each["ts"] + each["dur"] + 1
        inside = [x for x in tasks if each["ts"] - 1 <= x["ts"] < end]
        assert {x["name"] for x in inside} >= {"layer/add", "layer/mul", "layer/total"}
    assert min(x["ts"] for x in tasks) > runs[0]["ts"] - 1


def test_a_timeline_that_cannot_be_written(
    model: Path, inputs: tuple[Path, Path], tmp_path: Path
) -> None:
    done = run(model, *inputs, "--trace", tmp_path / "no" / "x", "-o", "/dev/null")
    assert done.returncode == 1
    assert "x: cannot be written to: No such file" in done.stderr
    file = tmp_path / "y.npy"
    done = run(model, *inputs, "--trace", file, "-o", f"{tmp_path}/./y.npy")
    assert done.returncode == 1 and not file.exists()
    assert "y.npy: is named for an output and for --trace" in done.stderr
