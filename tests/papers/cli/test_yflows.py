"""nanoloom reproduce yflows: tables and files of a tiny run."""

from __future__ import annotations

import csv
import json
import sys
from functools import partial
from pathlib import Path

import pytest

from nanoloom.schedule.dataflow.dataflow import Dataflow
from nanoloom_papers.reproduce import flow_figures, yflows
from nanoloom_papers.reproduce.flow_binary import BinaryLayer, binary
from nanoloom_papers.reproduce.flow_figures import Subject
from nanoloom_papers.reproduce.flow_layers import FlowLayer
from nanoloom_papers.reproduce.flow_search import Ranked
from nanoloom_papers.reproduce.yflows_files import as_csv
from tests.cli.conftest import Command
from tests.cli.test_refusals import refused

WORDS = ("reproduce", "yflows", "--quick", "--folder")
TITLES = (
    "Figure 2", "Figure 7a", "Figure 7b", "Finding 1", "Finding 5", "Figure 8",
    "Figure 9", "not measured: tvm: TVM is not installed",
)  # fmt: skip
TINY = FlowLayer(3, 9, 2, 1, 1, 8)


def test_a_tiny_run(
    tmp_path: Path, nanoloom: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(yflows, "layers", lambda target, quick: [TINY])
    small = Subject(9, "small", "binary", partial(binary, BinaryLayer(8, 5)), (1,))
    monkeypatch.setattr(flow_figures, "subjects", lambda quick: [small])
    said = nanoloom(*WORDS, tmp_path / "made")
    assert said.status == 0, said
    for title in TITLES:
        assert title in said.out
    with (tmp_path / "made" / "results.csv").open() as file:
        found = list(csv.DictReader(file))
    assert {each["anchor"] for each in found} == {"output", "weight", "input"}
    assert all(float(each["median_seconds"]) > 0 for each in found)
    told = json.loads((tmp_path / "made" / "results.json").read_text())
    assert len(told["results"]) == len(found) and len(told["findings"]) == 5
    with (tmp_path / "made" / "networks.csv").open() as file:
        timed = [x for x in csv.DictReader(file) if x["median_seconds"]]
    assert {"nanoloom", "plain"} <= {each["contender"] for each in timed}
    assert len(told["networks"]) > len(timed)
    assert all(isinstance(each["holds"], bool) for each in told["findings"])


def test_a_wrong_result_is_named(
    tmp_path: Path, nanoloom: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    ranked = (Ranked(Dataflow("output"), None, "wrong result"),)
    made = [yflows.Row(TINY, ranked)]
    monkeypatch.setattr(yflows, "run", lambda target, say, quick, done: iter(made))
    monkeypatch.setattr(flow_figures, "subjects", lambda quick: [])
    said = nanoloom(*WORDS, tmp_path)
    assert said.status == 1 and "output: wrong result" in said.out


def test_what_was_interrupted_goes_on(
    tmp_path: Path, nanoloom: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of the files stand in the new ones; nothing is measured."""
    subject = flow_figures.subjects(quick=True)[0]
    row = yflows.Row(TINY, (Ranked(Dataflow("output"), 0.5),))
    network = flow_figures.Row(subject, 1, {"nanoloom": 0.25}, {"nanoloom": "n 1"})
    network.absent["tvm"] = "not there"
    (tmp_path / "results.csv").write_text(as_csv([row]))
    (tmp_path / "networks.csv").write_text(flow_figures.as_csv([network]))
    monkeypatch.setattr(yflows, "layers", lambda target, quick: [TINY])
    monkeypatch.setattr(flow_figures, "subjects", lambda quick: [subject])
    said = nanoloom(*WORDS, tmp_path, "--resume", "--json")
    assert said.status == 0, said
    told = json.loads(said.out)
    assert [x["median_seconds"] for x in told["results"]] == [0.5]
    assert [x["median_seconds"] for x in told["networks"]] == [0.25, None]
    said = nanoloom("reproduce", "oml-vect", "--resume", "--folder", tmp_path)
    refused(said, "oml-vect is always measured whole", status=2)


def test_words_that_it_has_not(tmp_path: Path, nanoloom: Command) -> None:
    said = nanoloom(*WORDS, tmp_path, "--threads", "2")
    refused(said, "yflows has sizes, types and threads of its own", status=2)


def test_tvm_is_for_this_one_alone(tmp_path: Path, nanoloom: Command) -> None:
    words = ("reproduce", "oml-vect", "--folder", tmp_path)
    said = nanoloom(*words, "--tvm", sys.executable)
    refused(said, "oml-vect has no TVM", status=2)
    said = nanoloom(*WORDS, tmp_path, "--tvm", tmp_path / "no-python")
    assert said.status == 2 and "does not exist" in said.err
