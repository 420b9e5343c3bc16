"""nanoloom reproduce oml-vect: tables and files of a tiny run."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from nanoloom.reproduce import oml_vect
from nanoloom.reproduce.oml_models import QUICK, draw
from nanoloom.reproduce.oml_vect import CONFIGURATIONS, PEER, Row, claims, wrong
from tests.cli.conftest import Command
from tests.cli.test_refusals import refused

WORDS = ("reproduce", "oml-vect", "--quick", "--folder")


def test_a_tiny_run(tmp_path: Path, nanoloom: Command) -> None:
    said = nanoloom(*WORDS, tmp_path / "made")
    assert said.status == 0, said
    assert "Figure 7: reductions" in said.out and "Figure 8: milliseconds" in said.out
    assert "in the paper" in said.out
    with (tmp_path / "made" / "results.csv").open() as file:
        found = list(csv.DictReader(file))
    names = [each["contender"] for each in found if each["layer"] == "tiny"]
    assert names == [*CONFIGURATIONS, PEER]
    assert all(float(each["median_seconds"]) > 0 for each in found)
    counts = {(int(r["reductions"]), int(r["mlir_reductions"])) for r in found}
    # Attention: six products, two of softmax and two of the normalization, which are
    # all that MLIR sees.  A GRU: of both products, those of gates apart.
    assert (10, 2) in counts
    assert all(own > theirs for own, theirs in counts)
    told = json.loads((tmp_path / "made" / "results.json").read_text())
    assert len(told["results"]) == len(found) and len(told["claims"]) == 2


def test_a_wrong_result_is_named_and_not_timed(
    tmp_path: Path, nanoloom: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everybody is compared with what is right for other numbers."""
    monkeypatch.setattr(oml_vect, "wrong", lambda runs, wanted: wrong(runs, -wanted))
    monkeypatch.setattr(oml_vect, "QUICK", QUICK[:1])
    monkeypatch.setattr(oml_vect, "interleaved", lambda runs, turns: [])
    said = nanoloom(*WORDS, tmp_path, "--json")
    assert said.status == 1, said
    found = json.loads(said.out)["results"]
    assert all("wrong result" in each["note"] for each in found)
    assert all(each["median_seconds"] is None for each in found)


def test_claims_without_times() -> None:
    row = Row(QUICK[0], reductions=10, by_mlir=5)
    found = claims([row])
    assert [claim.holds for claim in found] == [False, None]
    row.seconds = {"onnx-mlir": 2.0, "oml-vect": 1.0}
    assert [claim.holds for claim in claims([row])] == [False, True]


def test_the_numbers_are_seeded() -> None:
    one, other = draw(QUICK[1]), draw(QUICK[1])
    assert all((one[name] == other[name]).all() for name in one)
    assert not np.allclose(one["wi"], draw(QUICK[1], seed=1)["wi"])


@pytest.mark.parametrize("words", [("--threads", "2"), ("--against", "none")])
def test_what_it_does_not_have(words: tuple[str, str], nanoloom: Command) -> None:
    refused(nanoloom("reproduce", "oml-vect", *words), "with one thread", status=2)
