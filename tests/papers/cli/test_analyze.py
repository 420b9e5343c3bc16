"""nanoloom analyze reductions: what a reader and a program are told of loops."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import dataclass
from pathlib import Path

import pytest

from nanoloom.workers.messages import Stage
from nanoloom_papers.affine import reduction_jobs
from tests.cli.conftest import Command
from tests.papers.affine.loops import carrying, updating
from tests.papers.affine.test_memory import UPDATE
from tests.sources import ROOT

FMA = UPDATE.replace("arith.addf %c, %x", "math.fma %x, %x, %c")


@pytest.fixture
def loops(tmp_path: Path) -> Path:
    path = tmp_path / "loops.mlir"
    path.write_text(updating(FMA))
    return path


def test_reductions_for_a_reader(loops: Path, nanoloom: Command) -> None:
    said = nanoloom("analyze", "reductions", loops)
    assert (said.status, said.err) == (0, "")
    assert said.out.splitlines() == [
        f"{loops}: 1 reduction in 1 of 3 affine loops",
        "",
        "line 7: @f, loop %k, 8 steps",
        "  %C[%i, %j] in memory (f32): addf, sum of squares",
        "    math.fma as mulf, addf",
        "    reads %A[%i, %k], contiguous",
    ]


def test_the_page_shows_what_is_printed(
    tmp_path: Path, nanoloom: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, text, _, shown, *_ = (ROOT / "docs/reductions.md").read_text().split("```\n")
    (tmp_path / "product.mlir").write_text(text)
    monkeypatch.chdir(tmp_path)
    assert nanoloom("analyze", "reductions", "product.mlir").out == shown


def test_reductions_as_json(loops: Path, nanoloom: Command) -> None:
    said = nanoloom("analyze", "reductions", "--json", loops)
    found = json.loads(said.out)
    assert found["file"] == str(loops)
    names = [(loop["name"], loop["line"], loop["depth"]) for loop in found["loops"]]
    assert names == [("%i", 4, 0), ("%j", 5, 1), ("%k", 7, 2)]
    assert [len(loop["reductions"]) for loop in found["loops"]] == [0, 0, 1]
    (reduction,) = found["loops"][2]["reductions"]
    assert reduction == {
        "kind": "addf",
        "form": "memory",
        "carried": "%C[%i, %j]",
        "type": "f32",
        "meaning": "sum of squares",
        "operations": ["math.fma"],
        "decomposition": ["mulf", "addf"],
        "reads": [
            {"element": "%A[%i, %k]", "type": "memref<4x8xf32>", "way": "contiguous"}
        ],
        "pair": "",
        "obstacle": "",
    }


def test_what_is_found_but_not_vectorized_says_why(
    tmp_path: Path, nanoloom: Command
) -> None:
    path = tmp_path / "division.mlir"
    path.write_text(carrying("%n = arith.divf %m, %x : f32"))
    said = nanoloom("analyze", "reductions", path)
    assert "not vectorized: a division is no product" in said.out


def test_a_file_without_loops(tmp_path: Path, nanoloom: Command) -> None:
    path = tmp_path / "none.mlir"
    path.write_text("func.func @f() { return }")
    said = nanoloom("analyze", "reductions", path)
    assert said.out == f"{path}: 0 reductions in 0 of 0 affine loops\n"
    assert json.loads(nanoloom("analyze", "reductions", "--json", path).out) == {
        "file": str(path),
        "loops": [],
    }


WRONG = [
    (b"func.func @f( {", "is no valid MLIR: expected"),
    (b"affine.for %i = 0 to 4 iter_args(%a = %b) {}", "is no valid MLIR"),
    (b"func.func @f() {\nonnx.Add()\nreturn }", "is no valid MLIR"),
    (b"\xff\xfe", "is no text"),
    (b"%0 = linalg.transpose permutation = x", "permutation is no list of numbers"),
]


@pytest.mark.parametrize(("content", "reason"), WRONG)
def test_a_file_that_is_none(
    tmp_path: Path, nanoloom: Command, content: bytes, reason: str
) -> None:
    path = tmp_path / "wrong.mlir"
    path.write_bytes(content)
    said = nanoloom("analyze", "reductions", path)
    assert (said.status, said.out) == (1, "")
    assert said.told.startswith("nanoloom:") and "wrong.mlir" in said.told
    assert reason in said.told and said.err.count("\n") == 1


def test_a_file_that_is_not_there(tmp_path: Path, nanoloom: Command) -> None:
    said = nanoloom("analyze", "reductions", tmp_path / "none.mlir")
    assert said.status == 1 and "cannot be read: No such file" in said.told


def test_an_analysis_that_there_is_not(loops: Path, nanoloom: Command) -> None:
    said = nanoloom("analyze", "shapes", loops)
    assert said.status == 2 and "shapes is none of reductions" in said.told


@dataclass(frozen=True)
class Dies:
    """A job that ends its process, as MLIR does at some texts."""

    number: int

    def run(self, stage: Stage) -> None:
        del stage
        os.kill(os.getpid(), self.number)


def test_a_text_at_which_mlir_crashes(
    loops: Path, nanoloom: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        reduction_jobs, "FindReductions", lambda _: Dies(signal.SIGSEGV)
    )
    said = nanoloom("analyze", "reductions", loops)
    assert said.status == 1 and "loops.mlir: makes MLIR crash" in said.told
