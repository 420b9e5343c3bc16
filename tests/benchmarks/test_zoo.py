"""`make models`: one export, from its file to its row and to the page."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from benchmarks.zoo import child, pytorch
from benchmarks.zoo.__main__ import RESULTS, ROOT, is_whole
from benchmarks.zoo.entry import Array, Entry, Exported, Run
from benchmarks.zoo.page import body, write
from nanoloom.inspect import peers

MODEL = """
<ir_version: 8, opset_import: ["" : 17]>
rise (float[2, 3] x) => (float[2, 3] y) <float one = {1.0}> { y = Add(x, one) }
"""
INPUT = np.arange(6, dtype=np.float32).reshape(2, 3)


class Peer:
    """Stands for ONNX Runtime, which not every environment has."""

    def __init__(self, *_: object) -> None: ...

    def run(self) -> list[Array]:
        return [INPUT + 1]


def entry(wanted: Array) -> Entry:
    def make(folder: Path) -> Exported:
        path = folder / "model.onnx"
        onnx.save(onnx.parser.parse_model(MODEL), path)
        return Exported(path, {"x": INPUT}, [wanted])

    return Entry("library", "Architecture", "exporter", make)


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "open_peer", Peer)
    monkeypatch.setattr(child, "AGAINST", "reference")


def rows(capsys: pytest.CaptureFixture[str]) -> Iterator[dict[str, Any]]:
    yield from map(json.loads, capsys.readouterr().out.splitlines())


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("untimed", [False, True])
def test_an_export_has_a_row(
    untimed: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:  # fmt: skip
    made = entry(INPUT + 1)
    monkeypatch.setattr(child, "entries", lambda: [made])
    child.main(made.name, untimed)
    row = list(rows(capsys))[-1]
    assert (row["status"], row["units"], row["torch units"]) == ("right", 0, 0)
    assert row["cold"] > 0 and row["memory"] > 0
    assert ("ratio" in row, is_whole(row, False)) == (not untimed, not untimed)
    assert is_whole(row, True)
    write([row], 3, tmp_path / "models.md")
    page = (tmp_path / "models.md").read_text()
    assert "1 of 3 exports are measured." in page
    (line,) = [x for x in page.splitlines() if x.startswith("| `Architecture@")]
    assert (line.split("|")[5] == "  ") == untimed


def module_of(found: Exported, threads: int) -> Run:
    """Stands for PyTorch, which not every environment has."""
    return found.module


def missing(found: Exported, threads: int) -> Run:
    raise RuntimeError("no C++ compiler")


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("inductor", [False, True])
def test_modules_are_timed_beside_pytorch(
    inductor: bool, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
) -> None:  # fmt: skip
    plain = entry(INPUT + 1)
    made = replace(
        plain, make=lambda folder: replace(plain.make(folder), module=lambda: INPUT)
    )
    monkeypatch.setattr(child, "entries", lambda: [made])
    monkeypatch.setattr(child, "MAKERS", {"torch": module_of, "inductor": missing})
    monkeypatch.setattr(pytorch, "SPINNING", 0)
    child.main(made.name, False, inductor)
    row = list(rows(capsys))[-1]
    assert row["torch ratio"] > 0 and "inductor ratio" not in row
    assert row.get("inductor reason", "").endswith("no C++ compiler") == inductor
    assert is_whole(row, False, ["torch"])
    assert is_whole(row, False, ["torch", "inductor"]) == inductor
    write([row], 1, tmp_path / "models.md")
    page = (tmp_path / "models.md").read_text()
    assert "| PyTorch | 1 | " in page and "| Inductor | " not in page


def test_the_page_is_of_the_rows_that_are_kept() -> None:
    page = (ROOT / "docs/models.md").read_text()
    total = re.search(r"^\d+ of (\d+) exports", page, re.MULTILINE)
    assert total
    kept = [json.loads(line) for line in RESULTS.read_text().splitlines()]
    assert page.endswith(body(kept, int(total[1])))


def test_rows_of_a_busy_machine_are_marked(tmp_path: Path) -> None:
    row = {"name": "library/A@exporter", "status": "right", "cold": 1.0}
    write([row, {**row, "loaded": True}], 2, tmp_path / "models.md")
    page = (tmp_path / "models.md").read_text()
    assert page.count("| 1.0 |") == page.count("| 1.0\\* |") == 1


def test_only_modules_in_the_same_types_have_a_time_of_pytorch() -> None:
    plain = entry(INPUT)
    kinds = [replace(plain, kind="timm", way=way) for way in ("script", "script+qdq")]
    assert [x.has_module for x in (plain, *kinds)] == [False, True, False]


@pytest.mark.usefixtures("alone")
def test_what_pytorch_gives_is_compared_as_well(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = entry(INPUT + 2)
    monkeypatch.setattr(child, "entries", lambda: [made])
    child.main(made.name, True)
    row = list(rows(capsys))[-1]
    assert row["torch units"] > 1 and row["units"] == 0
    assert (row["status"], row["reason"]) == ("differs", "is not what PyTorch gives")
