"""The crate: the example as its README builds it, and a program of checks."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import onnx
import pytest

import nanoloom
from nanoloom.rust import FOLDER
from tests.cli import models
from tests.cpp.programs import LOOP
from tests.dynamic.test_rooms import HEAD, READ
from tests.sources import ROOT

SUMS = """
    g (float[batch, length] x) => (float[batch] y) {
      axes = Constant<value_ints = [1]>()
      y = ReduceSum<keepdims = 0>(x, axes)
    }
"""
KEPT = """
g (float[new, 4] x, float[past, 4] past_key)
    => (float[new, 4] y, float[total, 4] present_key)
{
    present_key = Concat<axis = 0>(past_key, x)
    axis = Constant<value = int64[1] {0}>()
    all = ReduceSum(present_key, axis)
    zero = Constant<value = float {0}>()
    none = Mul(x, zero)
    y = Add(all, none)
}
"""
MODELS = {
    "SUMS": SUMS,
    "LOOP": LOOP,
    "FOUND": "g (float[6] x) => (int64[1, found] y) { y = NonZero(x) }",
}
# The crate is for those who have Rust: without cargo there is nothing to build it with.
CARGO = [found] if (found := shutil.which("cargo")) else []


def library(folder: Path, name: str, text: str) -> Path:
    model = models.write(folder, text, f"{name}.onnx", 18)
    return nanoloom.compile(model).save(folder / f"{name}.so", name)


def run(
    cargo: str, folder: Path, target: Path, *words: str, **variables: Path
) -> subprocess.CompletedProcess[str]:
    """Run the program of a folder, built without any network."""
    own = {"CARGO_TARGET_DIR": target} | variables
    environment = os.environ | {key: str(value) for key, value in own.items()}
    manifest = ["--manifest-path", str(folder / "Cargo.toml")]
    command = [cargo, "run", "--offline", "--quiet", *manifest, "--", *words]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def crates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copies, beside which cargo writes its lock files, as they lie in the tree."""
    folder = tmp_path_factory.mktemp("crates")
    for part in ("nanoloom/rust", "examples/rust", "tests/rust/checks"):
        shutil.copytree(ROOT / part, folder / part)
    return folder


@pytest.mark.parametrize("cargo", CARGO)
def test_the_example(cargo: str, crates: Path, tmp_path: Path) -> None:
    place = {"MODEL": library(tmp_path, "sums of rows", SUMS)}
    example, target = crates / "examples/rust", crates / "target"
    ran = run(cargo, example, target, "3", "5", **place)
    assert (ran.returncode, ran.stdout) == (0, "y: 2.5 3.5 4.5\n"), ran.stderr
    refused = run(cargo, example, target, "-3", "5", **place)
    assert refused.returncode == 1
    assert refused.stderr == "batch is -3, and at least 0 is wanted\n"
    none = run(cargo, example, target, MODEL=tmp_path / "other.so")
    assert none.returncode != 0 and "other.so: No such file" in none.stderr


@pytest.mark.parametrize("cargo", CARGO)
def test_checks(cargo: str, crates: Path, tmp_path: Path) -> None:
    made = {x: library(tmp_path, x, text) for x, text in MODELS.items()}
    grown = nanoloom.compile(onnx.parser.parse_model(f"{HEAD}\n{READ}"))
    made["GROWN"] = grown.save(tmp_path / "grown.so")
    kept = nanoloom.compile(models.write(tmp_path, KEPT, "kept.onnx", 18))
    made["KEPT"] = kept.save(tmp_path / "kept.so", session=True)
    ran = run(cargo, crates / "tests/rust/checks", crates / "target", **made)
    assert (ran.returncode, ran.stdout) == (0, "all is right\n"), ran.stderr


def test_the_folder_is_printed() -> None:
    command = [sys.executable, "-m", "nanoloom", "--rust-dir"]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert Path(found.stdout.strip()) == FOLDER
    assert f'version = "{nanoloom.__version__}"' in (FOLDER / "Cargo.toml").read_text()
