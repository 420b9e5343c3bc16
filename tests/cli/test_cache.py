"""nanoloom cache: says what is kept, and removes it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nanoloom.cache import Cache
from tests.cli.conftest import Command

A, B = (character * 64 for character in "ab")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    cache = Cache(tmp_path / "kept")
    cache.put(A, b"x" * 3000)
    cache.put(B, b"x" * 3000)
    return cache.root


def test_size(folder: Path, nanoloom: Command) -> None:
    said = nanoloom("cache", "--cache", folder)
    assert said.status == 0
    first, kernels, *_ = said.out.splitlines()
    assert first == f"{folder}: 6.0 KiB of 4.0 GiB"
    assert kernels == "  kernels: 2 entries, 6.0 KiB"


def test_list(folder: Path, nanoloom: Command) -> None:
    said = nanoloom("cache", "list", "--cache", folder)
    lines = [line for line in said.out.splitlines() if line.endswith((A, B))]
    assert len(lines) == 2 and all("kernels" in line for line in lines)


def test_prune_and_clear(folder: Path, nanoloom: Command) -> None:
    said = nanoloom("cache", "prune", "--limit", "4K", "--cache", folder)
    assert said.status == 0 and "removed 3.0 KiB" in said.out
    assert len(Cache(folder).entries()) == 1
    said = nanoloom("cache", "clear", "--json", "--cache", folder)
    facts = json.loads(said.out)
    assert facts["entries"] == [] and facts["bytes"] == 0 < facts["removed"]
    assert Cache(folder).entries() == []


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("shrink",), "shrink is none of size, list, prune, clear"),
        (("prune", "--limit", "much"), "'much' is no size like 500M or 2G"),
        (("clear", "--limit", "1G"), "it goes with prune"),
    ],
)
def test_wrong_usage(
    folder: Path, nanoloom: Command, words: tuple[str, ...], told: str
) -> None:
    said = nanoloom("cache", *words, "--cache", folder)
    assert said.status == 2 and told in said.told
    assert len(Cache(folder).entries()) == 2
