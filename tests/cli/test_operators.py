"""nanoloom operators: readable on a terminal and in a pipe."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from nanoloom.cli.operators import load, markdown
from tests.cli.conftest import Command
from tests.cli.test_main import MODULE
from tests.cli.test_refusals import refused

PAGE = Path(__file__).parents[2] / "docs" / "operators.md"


def test_80_columns_hold_whole_words(nanoloom: Command) -> None:
    said = nanoloom("operators")
    lines = said.out.splitlines()
    assert said.status == 0 and max(map(len, lines)) <= 80
    rows, words = load(), said.out.replace(";", " ").replace(",", " ").split()
    assert {row.short_name for row in rows} <= set(words)
    assert {name for row in rows for name in row.types} <= set(words)
    assert len(lines) < 2 * len(rows)


def test_a_pipe_gets_one_line_for_each() -> None:
    unsaid = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    words = [*MODULE, "operators"]
    ran = subprocess.run(words, capture_output=True, check=True, env=unsaid)
    lines = ran.stdout.decode().splitlines()
    for row in load():
        (line,) = [x for x in lines if x.split()[:1] == [row.short_name]]
        assert ", ".join(row.types) in line and line.rstrip().endswith(row.note)


@pytest.mark.parametrize("name", ["ai.onnx.ml.LabelEncoder", "LabelEncoder"])
def test_a_name_with_its_domain_or_without(nanoloom: Command, name: str) -> None:
    said = nanoloom("operators", name)
    first = [line.split()[0] for line in said.out.splitlines()]
    assert first[0] == "ai.onnx.ml" and first[-1] == "LabelEncoder"


def test_no_such_operator(nanoloom: Command) -> None:
    refused(nanoloom("operators", "Add", "Rellu"), "Rellu", "no such operator")


def test_the_page_is_current() -> None:
    assert PAGE.read_text("utf-8") == markdown(load())
    assert "com.microsoft" in markdown(load())
