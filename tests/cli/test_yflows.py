"""nanoloom reproduce yflows: tables and files of a tiny run."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from nanoloom.reproduce import yflows
from nanoloom.reproduce.flow_layers import FlowLayer
from nanoloom.reproduce.flow_search import Ranked
from nanoloom.schedule.dataflow.dataflow import Dataflow
from tests.cli.conftest import Command
from tests.cli.test_refusals import refused

WORDS = ("reproduce", "yflows", "--quick", "--folder")
TINY = FlowLayer(3, 9, 2, 1, 1, 8)


def test_a_tiny_run(
    tmp_path: Path, nanoloom: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(yflows, "layers", lambda target, quick: [TINY])
    said = nanoloom(*WORDS, tmp_path / "made")
    assert said.status == 0, said
    for title in ("Figure 2", "Figure 7a", "Figure 7b", "Finding 1", "Finding 5"):
        assert title in said.out
    with (tmp_path / "made" / "results.csv").open() as file:
        found = list(csv.DictReader(file))
    assert {each["anchor"] for each in found} == {"output", "weight", "input"}
    assert all(float(each["median_seconds"]) > 0 for each in found)
    told = json.loads((tmp_path / "made" / "results.json").read_text())
    assert len(told["results"]) == len(found) and len(told["findings"]) == 5
    assert all(isinstance(each["holds"], bool) for each in told["findings"])


def test_a_wrong_result_is_named(
    tmp_path: Path, nanoloom: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    ranked = (Ranked(Dataflow("output"), None, "wrong result"),)
    made = [yflows.Row(TINY, ranked)]
    monkeypatch.setattr(yflows, "run", lambda target, say, quick: iter(made))
    said = nanoloom(*WORDS, tmp_path)
    assert said.status == 1 and "output: wrong result" in said.out


def test_words_that_it_has_not(tmp_path: Path, nanoloom: Command) -> None:
    said = nanoloom(*WORDS, tmp_path, "--threads", "2")
    refused(said, "yflows is measured in f32, with one thread", status=2)
