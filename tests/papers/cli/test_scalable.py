"""nanoloom reproduce scalable: tables, files and claims of a tiny run."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from nanoloom.target.tail_forms import FORMS
from nanoloom_papers.reproduce import scalable, scalable_counts
from nanoloom_papers.reproduce.scalable_attempts import Attempt, attempts
from nanoloom_papers.reproduce.scalable_results import Result
from tests.cli.conftest import Command
from tests.cli.test_refusals import refused

TRIED = ("vector.mask", "vector.transfer_read", "elementwise", "convolution of rows")


def few(say: scalable.Say) -> Iterator[Attempt]:
    yield from attempts(say, TRIED)


def counted(say: scalable.Say, *, quick: bool) -> Iterator[Result]:
    """Numbers as a run has them: masked ones are a tenth more."""
    assert quick
    say("counting")
    for number, form in enumerate(FORMS):
        for bits, count in ((128, 4000), (512, 1000)):
            machine = f"rvv {bits}"
            value = count + number * count // 10
            yield Result("instructions", "elementwise", 257, machine, form, value)
    yield Result("cycles", "elementwise", 0, "neoverse-v1", "", None, "no model")


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scalable, "operations", few)
    monkeypatch.setattr(scalable, "measured", counted)


@pytest.mark.usefixtures("tiny")
def test_a_tiny_run(tmp_path: Path, nanoloom: Command) -> None:
    said = nanoloom("reproduce", "scalable", "--quick", "--folder", tmp_path)
    assert said.status == 0, said
    for words in ("tiled.mlir:", "vector.vscale", "vector.mask", "no model"):
        assert words in said.out
    assert "\\x0a" not in said.out and "neoverse-v1" in said.out  # lines, whole names
    for name, has in {
        "tiled.mlir": "step %c4_vscale",
        "vectorized-masked.mlir": "vector.create_mask %dim",
        "lowered-peeled.mlir": "vector.transfer_write",
        "masked-sve.s": "whilelt",
        "peeled-rvv.s": "vl2re32",
        "nanoloom-masked-sve.s": "whilelo",
        "nanoloom-vector-length-rvv.s": "vsetvli",
    }.items():
        assert has in (tmp_path / name).read_text(), name
    with (tmp_path / "operations.csv").open() as file:
        tried = list(csv.DictReader(file))
    assert len(tried) == 4 * len(TRIED)
    works = {(x["name"], x["by"]) for x in tried if x["works"] == "True"}
    assert ("vector.mask", "mlir") in works and ("elementwise", "nanoloom") in works
    assert ("convolution of rows", "mlir") not in works
    told = json.loads((tmp_path / "results.json").read_text())
    holds = {x["what"]: x["holds"] for x in told["claims"]}
    assert holds["peeling works with scalable sizes: a main loop without masks"]
    assert holds["compiled once, it uses the full width of every machine"]
    assert holds["operations that it says no to are missing"] is False
    assert holds["RVV: strip-mining by setvl works better than masks"] is False
    assert any(x is None for x in holds.values())
    assert (tmp_path / "instructions.png").read_bytes()[:4] == b"\x89PNG"


def test_a_wrong_result_is_named(
    tmp_path: Path, nanoloom: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = Result("instructions", "sum", 7, "rvv 128", "masked", None, "wrong result")
    monkeypatch.setattr(scalable, "operations", lambda say: iter(()))
    monkeypatch.setattr(scalable, "measured", lambda say, quick: iter([wrong]))
    said = nanoloom("reproduce", "scalable", "--quick", "--folder", tmp_path)
    assert said.status == 1 and "wrong result" in said.out


@pytest.mark.parametrize("words", [("--threads", "2"), ("--target", "riscv64+v")])
def test_what_it_does_not_have(words: tuple[str, str], nanoloom: Command) -> None:
    said = nanoloom("reproduce", "scalable", *words)
    refused(said, "scalable has machines and sizes of its own", status=2)


def test_without_llvm_mca(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scalable_counts, "newest", lambda: None)
    (missing,) = scalable_counts.cycles(lambda _: None, quick=True)
    assert "llvm-mca is not installed" in missing.note
