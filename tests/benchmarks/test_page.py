"""docs/performance.md, docs/speed.svg and README's table are made of kept results."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks import __main__ as command
from benchmarks import page, results
from benchmarks.chart import Bars
from benchmarks.results import ROOT, Machine, Result
from benchmarks.show import Sheet, print_sheet
from nanoloom.errors import InputError
from nanoloom.target.host import host

COLUMNS = ("model", "type", ">threads", ">nanoloom ms", ">ONNX Runtime ms")
ROWS = (("a", "f32", "1", "2.0", "4.0"), ("b|c", "f32", "1", "1.0", "8.0"))
SHEET = Sheet("Two models", COLUMNS, ROWS, ("a note",))


@pytest.mark.parametrize("name", ["docs/performance.md", "docs/speed.svg", "README.md"])
def test_files_are_what_the_kept_results_make(name: str) -> None:
    made = page.written(results.read_machines())
    assert (ROOT / name).read_text("utf-8") == made[name], "python -m benchmarks page"


def test_the_table_of_the_readme_is_one_of_the_page() -> None:
    readme, whole = (
        (ROOT / name).read_text("utf-8")
        for name in ("README.md", "docs/performance.md")
    )
    begin, end = page.MARKS
    table = readme.split(begin)[1].split(end)[0]
    assert table.count("\n") > 5 and table in whole


def test_a_figure_that_changes_is_seen() -> None:
    machines = results.read_machines()
    made = page.written(machines)
    key, name = page.SPEED
    (machine,) = [each for each in machines if each.key == key]
    sheet = machine.results[name].tables[0]
    rows = (tuple("9999.9" for _ in sheet.columns), *sheet.rows[1:])
    other = Result("c", "d", "e", (Sheet(sheet.title, sheet.columns, rows),))
    changed = page.written(
        [
            Machine(m.key, m.title, m.facts, {**m.results, name: other})
            if m is machine
            else m
            for m in machines
        ]
    )
    for path in ("README.md", "docs/performance.md"):
        assert "9999.9" in changed[path] and "9999.9" not in made[path]


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 120


SPEED = re.compile(r"\d (?:ms|us|GB/s|GFLOP/s)\b|\d times as fast")


def pages() -> list[Path]:
    return [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]


@pytest.mark.parametrize("path", pages(), ids=lambda path: path.name)
def test_figures_of_speed_are_in_one_page(path: Path) -> None:
    text = path.read_text("utf-8")
    assert bool(SPEED.search(text)) == (path.name == "performance.md")


def test_every_result_says_what_was_run() -> None:
    for machine in results.read_machines():
        for result in machine.results.values():
            assert re.match(r"python -m benchmarks |nanoloom ", result.command)
            assert re.fullmatch(r"\d{4}-\d\d-\d\d", result.date)
            assert re.fullmatch(r"[0-9a-f]{7}", result.commit)
            assert machine.facts and all(sheet.rows for sheet in result.tables)


def test_links_of_the_contents_lead_to_headings() -> None:
    text = (ROOT / "docs/performance.md").read_text("utf-8")
    heads = {page.anchor(head) for head in re.findall("^## (.*)$", text, re.MULTILINE)}
    assert set(re.findall(r"\]\(#(.*)\)", text)) == heads


def test_a_table_in_markdown() -> None:
    first, rule, *rows = page.table(SHEET).splitlines()
    assert first == "| model | type | threads | nanoloom ms | ONNX Runtime ms |"
    assert rule == "|---|---|---:|---:|---:|"
    assert rows[1] == "| b\\|c | f32 | 1 | 1.0 | 8.0 |"


def test_means_are_computed() -> None:
    (said,) = page.means(SHEET)  # the geometric mean of 2 and 8
    assert said.startswith("nanoloom is 4.00 times as fast as the faster peer")
    assert not page.means(Sheet("", (">nanoloom ms", ">other ms"), (("1", "2"),)))


def test_bars_are_as_long_as_numbers() -> None:
    bars = Bars("t", ("x", "y"), {"a": [1.0, 2.0], "b<": [4.0, 0.5]})
    root = ElementTree.fromstring(bars.to_svg())
    space = "{http://www.w3.org/2000/svg}"
    _, _, _, *drawn = (float(r.attrib["width"]) for r in root.iter(f"{space}rect"))
    assert [round(4 * width / max(drawn), 2) for width in drawn] == [1, 2, 4, 0.5]
    assert "b<" in [each.text for each in root.iter(f"{space}text")]


def fake(given: Sequence[str]) -> None:
    print_sheet(SHEET)


def test_a_recorded_run_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        results, "git", lambda *words: "" if "status" in words else "a1b2"
    )
    for each in (command, results):
        monkeypatch.setattr(each, "commit", results.commit, raising=False)
    keep = partial(results.write_result, folder=tmp_path)
    monkeypatch.setattr(command, "write_result", keep)
    command.run_named(fake, ["gemm", "--threads", "1", "--record", "kept"])
    (machine,) = results.read_machines(tmp_path)
    assert machine.key == host().name.removeprefix("host-")
    result = machine.results["kept"]
    assert result.command == "python -m benchmarks gemm --threads 1"
    assert (result.tables, result.commit, result.stated) == ((SHEET,), "a1b2", False)
    text = page.page([machine])
    assert page.table(SHEET) in text and "at commit a1b2" in text
    assert "kept.json" in capfd.readouterr().out


def test_without_record_nothing_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "write_result", None)
    command.run_named(fake, ["gemm"])


def test_words_of_record() -> None:
    words = ["gemm", "--record", "--quick"]
    assert command.recorded_as(words) == ("gemm", ["--quick"], "gemm")
    words = ["gemm", "--quick", "--record", "small"]
    assert command.recorded_as(words) == ("gemm", ["--quick"], "small")
    assert command.recorded_as(["gemm", "--quick"]) == ("gemm", ["--quick"], None)


def test_code_without_a_commit_is_not_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "git", lambda *_: " M nanoloom/compiler.py")
    with pytest.raises(InputError, match=r"names the commit .* commit them first"):
        results.commit()


def test_a_row_of_a_table_is_a_line_of_the_file(tmp_path: Path) -> None:
    record = {"rows": [["a", "b, c"], ["[", "{"], []], "notes": ["one\n two"]}
    results.dump(tmp_path / "x.json", record)
    text = (tmp_path / "x.json").read_text("utf-8")
    assert json.loads(text) == record and '["a", "b, c"],\n' in text
