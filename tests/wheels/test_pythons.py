"""Which Pythons `make pythons` finds, and which tags a version has."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

from tests.sources import ROOT


def script(name: str) -> ModuleType:
    spec = spec_from_file_location(name, ROOT / "wheels" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def interpreter(place: Path, name: str, status: int) -> Path:
    place.mkdir(parents=True, exist_ok=True)
    file = place / name
    file.write_text(f"#!/bin/sh\nexit {status}\n")
    file.chmod(0o755)
    return file


def test_one_of_each_version_is_found(tmp_path: Path) -> None:
    """Not those that are too old or too new, nor shims of what is not installed."""
    path, pyenv = tmp_path / "bin", tmp_path / ".pyenv/versions/3.12.1/bin"
    wanted = [interpreter(path, "python3.11", 0), interpreter(pyenv, "python3.12", 0)]
    interpreter(path, "python3.12", 1)
    interpreter(path, "python3.13", 1)
    interpreter(path, "python3.10", 0)
    interpreter(path, "python3.15", 0)
    interpreter(path, "python3.11-config", 0)
    interpreter(tmp_path / ".pyenv/versions/3.11.7/bin", "python3.11", 0)
    found = script("pythons").found([str(path), ""], tmp_path)
    assert found == [str(file) for file in wanted]


def test_an_index_without_wheels(tmp_path: Path) -> None:
    command = [sys.executable, ROOT / "wheels/pythons.py", tmp_path]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert ran.stderr == f"{tmp_path}: no wheel of nanoloom; make wheels writes it\n"


@pytest.mark.parametrize(
    ("tags", "version", "right"),
    [
        ([], "0.1.0", True),
        (["v0.1.0"], "0.1.0", True),
        (["nightly"], "0.1.0", True),
        (["v0.2.0"], "0.1.0", False),
        (["v0.1"], "0.1.0", False),
    ],
)
def test_a_tag_is_the_version(tags: list[str], version: str, right: bool) -> None:
    said = script("build").mistagged(tags, version)
    assert (said == "") == right and (right or tags[0] in said)
