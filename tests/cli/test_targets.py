"""nanoloom targets and nanoloom demo."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import nanoloom as package
from nanoloom.cli import demo
from nanoloom.errors import Error
from nanoloom.target import TARGETS, by_name
from nanoloom.target.cached_host import from_dict
from nanoloom.target.host import host
from tests.cli.conftest import Command


@pytest.mark.parametrize("columns", [80, 120])
def test_every_target_has_a_row(
    nanoloom: Command, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    said = nanoloom("targets")
    assert said.status == 0 and said.err == ""
    first = [line.split()[0] for line in said.out.splitlines() if line.strip()]
    assert {target.name for target in TARGETS} <= set(first)
    assert host().name in first and "this machine" in said.out
    assert max(map(len, said.out.splitlines())) <= columns


def test_targets_as_json(nanoloom: Command) -> None:
    found = json.loads(nanoloom("targets", "--json").out)
    assert [from_dict(facts) for facts in found["targets"]] == list(TARGETS)
    assert from_dict(found["host"]) == host() and "peaks" not in found


def test_features_that_can_be_added(nanoloom: Command) -> None:
    lines = [line.split() for line in nanoloom("targets").out.splitlines()]
    assert ["+zvfh", "riscv64", "vectors", "of", "f16"] in lines
    assert ["+amx-bf16", "x86_64", "512", "tiles,", "and"] in [x[:5] for x in lines]
    found = json.loads(nanoloom("targets", "--json").out)["features"]
    named = {(each["arch"], each["name"]): each for each in found}
    assert "aarch64" in named["aarch64", "sve2"]["to"]
    assert named["x86_64", "vnni"]["bits"] == 256
    for each in found:
        assert each["to"], "a feature that nothing can have"
        for name in each["to"]:
            assert by_name(f"{name}+{each['name']}") != by_name(name)
    for target in TARGETS:
        with pytest.raises(Error) as refused:
            by_name(f"{target}+none")
        told = (refused.value.hint or "").removeprefix("known: ").split(", ")
        for name in told:
            there = target.has(name) or str(target) in named[target.arch, name]["to"]
            assert there, "a feature that is told to nobody"


def test_measured_peaks(nanoloom: Command) -> None:
    said = nanoloom("targets", "--measure", "--threads", "2")
    assert said.status == 0
    assert "measured peak" in said.out and "1 thread" in said.out
    lines = {line.split()[0]: line for line in said.out.splitlines() if line.strip()}
    assert "GFLOP/s" in lines["f32"] and "GB/s" in lines["memory"]
    found = json.loads(nanoloom("targets", "--measure", "--json").out)
    rates = {rate["what"]: rate["best"] for rate in found["peaks"]["rates"]}
    assert rates["f32"] > 0 and rates["memory"] > 0


# ---- demo


def test_the_demo_is_that_of_the_examples(
    tmp_path: Path, nanoloom: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[Path, int]] = []

    def example(folder: Path, threads: int) -> int:
        asked.append((folder, threads))
        return 0

    monkeypatch.setattr("examples.minilm.demo.demo", example)
    before = list(sys.path)
    assert nanoloom("demo", "--folder", tmp_path, "-t", "2").status == 0
    assert nanoloom("demo", "--cache", tmp_path, "-t", "1").status == 0
    assert asked == [(tmp_path, 2), (tmp_path / "demo", 1)]
    assert sys.path == before


def test_the_demo_is_not_installed(
    tmp_path: Path, nanoloom: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(package, "__file__", str(tmp_path / "a" / "b.py"))
    said = nanoloom("demo")
    assert said.status == 1 and "source tree" in said.err


def test_the_demo_lacks_a_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "examples.minilm.demo", raising=False)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(Error, match=r"needs the package onnxruntime.*nanoloom\[demo\]"):
        demo.minilm()
