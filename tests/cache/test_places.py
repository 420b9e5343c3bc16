"""Which cache a caller gets, and what is said of its entries."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import nanoloom
from nanoloom.cache import Cache, default_root
from tests.cli import models

A, B, C = (character * 64 for character in "abc")


def test_the_variable_names_the_root(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("NANOLOOM_CACHE", str(tmp_path / "mine"))
    assert default_root() == tmp_path / "mine" == Cache.of(None).root
    monkeypatch.setenv("NANOLOOM_CACHE", "")
    assert default_root().name == "nanoloom"


@pytest.mark.parametrize("kind", [str, Path])
def test_a_cache_is_named_by_its_folder(tmp_path: Path, kind: type) -> None:
    assert Cache.of(kind(tmp_path)).root == tmp_path
    store = Cache(tmp_path)
    assert Cache.of(store) is store


@pytest.mark.parametrize("way", ["argument", "variable"])
def test_compile_keeps_its_code_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    folder = tmp_path / "cache"
    if way == "variable":
        monkeypatch.setenv("NANOLOOM_CACHE", str(folder))
    model = models.write(tmp_path, "g (float[2] x) => (float[2] y) { y = Relu(x) }")
    named = {"cache": str(folder)} if way == "argument" else {}
    program = nanoloom.compile(model, threads=1, **named)  # type: ignore[arg-type] - a row
    made = program({"x": np.array([-1, 2], np.float32)})["y"]
    assert made.tolist() == [0, 2]
    assert {"kernels", "models"} <= {e.kind for e in Cache(folder).entries()}


def test_what_is_no_cache_is_refused(tmp_path: Path) -> None:
    model = models.write(tmp_path, models.RELU)
    with pytest.raises(nanoloom.Error, match=r"^cache is 3; give the path of a folder"):
        nanoloom.compile(model, cache=3)  # type: ignore[arg-type] - refused
    with pytest.raises(nanoloom.Error, match=r"model.onnx: the cache is no folder"):
        nanoloom.compile(model, cache=model)


def test_shrinking_removes_the_least_recently_used(tmp_path: Path) -> None:
    import os

    cache = Cache(tmp_path)
    for age, key in enumerate((C, B, A)):
        cache.put(key, b"x" * 100)
        os.utime(tmp_path / "kernels" / key, (1000 - age, 1000 - age))
    sizes = [entry.bytes for entry in cache.entries()]
    assert [entry.key for entry in cache.entries()] == [A, B, C]
    assert cache.shrink(2 * sizes[0]) == 2 * sizes[0]
    assert [entry.key for entry in cache.entries()] == [B, C]
    assert cache.shrink(0) == 0 and cache.entries() == []
