"""Verbs and strategies of other packages: found, left out, and missed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nanoloom.cli import lowering_options, main, plugins
from nanoloom.errors import Error
from nanoloom.options import CompileOptions
from nanoloom.target.host import host
from tests.cli.conftest import Command

ENTRIES = """[console_scripts]
more = more:main

[nanoloom.commands]
count = counting:COUNT
lost = nowhere_at_all:LOST

[nanoloom.strategies]
scalar = counting:SCALAR
"""
CODE = '''
from nanoloom.cli.plugins import Strategies, Verb

def count() -> int:
    """Count to three."""
    print("1 2 3")
    return 0

COUNT = Verb("count", count, "Example: nanoloom count")
SCALAR = Strategies(("scalar",), {}, lambda name: name)
'''


@pytest.fixture
def forgotten() -> Iterator[None]:
    """What was found before is asked again, here and afterwards."""
    plugins.verbs.cache_clear()
    plugins.strategies.cache_clear()
    yield
    plugins.verbs.cache_clear()
    plugins.strategies.cache_clear()


@pytest.fixture
def alone(forgotten: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """No other package is installed."""
    monkeypatch.setattr(plugins, "registered", lambda group: {})
    monkeypatch.setattr(lowering_options, "STRATEGIES", ())


def test_what_a_package_registers_is_found(
    forgotten: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    nanoloom: Command,
) -> None:
    beside = tmp_path / "nanoloom_counting-1.0.dist-info"
    beside.mkdir()
    (beside / "entry_points.txt").write_text(ENTRIES)
    (tmp_path / "counting.py").write_text(CODE)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    said = nanoloom("count")
    assert (said.status, said.out) == (0, "1 2 3\n")
    assert said.told == (
        "nanoloom: warning: lost is left out, it does not load: "
        "No module named 'nowhere_at_all'"
    )
    assert "count" in {verb.name for verb in main.verbs()}
    assert ("scalar",) in {each.names for each in plugins.strategies()}


@pytest.mark.parametrize("words", [("reproduce", "yflows", "--quick"), ("analyze",)])
def test_a_verb_of_a_package_that_is_missing(
    alone: None, nanoloom: Command, words: tuple[str, ...]
) -> None:
    said = nanoloom(*words)
    assert said.status == 2 and said.out == ""
    assert said.told == (
        f"nanoloom: {words[0]} is of the package nanoloom-papers; pip install "
        "'nanoloom[papers]', or ./papers in nanoloom's folder, brings it"
    )


def test_help_lists_what_is_there(alone: None, nanoloom: Command) -> None:
    said = nanoloom("--help")
    assert said.status == 0
    assert "reproduce" not in said.out and "compile" in said.out


def test_a_strategy_of_a_package_that_is_missing(
    alone: None, nanoloom: Command, tmp_path: Path
) -> None:
    said = nanoloom("run", tmp_path / "layer.onnx", "--strategy", "affine")
    assert said.status == 2
    told = "affine is none of default; pip install 'nanoloom[papers]', or ./papers in"
    assert told in said.told


def test_a_strategy_is_a_value() -> None:
    with pytest.raises(Error, match="strategy is a value or None, not 'affine'"):
        CompileOptions(host(), strategy="affine")  # type: ignore[arg-type] - that is what is refused
