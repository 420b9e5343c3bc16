"""nanoloom compile -o NAME: a program for this machine or another."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.cli import models
from tests.cli.conftest import Command
from tests.cli.test_refusals import refused


@pytest.fixture
def dense(tmp_path: Path) -> Path:
    return models.write(tmp_path, models.DENSE, "dense.onnx")


def test_a_program_computes_what_run_does(
    tmp_path: Path, dense: Path, nanoloom: Command
) -> None:
    program = tmp_path / "dense"
    said = nanoloom("compile", dense, "-d", "batch=3", "-o", program)
    assert (said.status, said.told) == (0, f"nanoloom: wrote {program}")
    assert os.access(program, os.X_OK)
    rng = np.random.default_rng(3)
    for name, shape in (("x", (3, 7)), ("w", (7, 5))):
        np.save(tmp_path / f"{name}.npy", rng.standard_normal(shape).astype("f4"))
    given = [f"{name}={tmp_path / name}.npy" for name in ("x", "w")]
    words = ("-i", given[0], "-i", given[1], "-o", tmp_path / "want")
    assert nanoloom("run", dense, *words).status == 0
    (tmp_path / "got").mkdir()
    files = [str(tmp_path / name) for name in ("x.npy", "w.npy")]
    subprocess.run([program, *files, "-o", str(tmp_path / "got")], check=True)
    for name in ("y.npy", "z.npy"):
        want = np.load(tmp_path / "want" / name)
        np.testing.assert_array_equal(np.load(tmp_path / "got" / name), want)
        assert want.any()


def test_the_program_knows_the_models_name_and_digest(
    tmp_path: Path, dense: Path, nanoloom: Command
) -> None:
    told: list[str] = []
    for name in ("a", "b"):
        words = ("-d", "batch=1", "-o", tmp_path / name)
        assert nanoloom("compile", dense, *words).status == 0
        command = [tmp_path / name, "--info"]
        told.append(subprocess.check_output(command, text=True))
    assert told[0] == told[1] and "model: dense\n" in told[0]
    assert len(told[0].split("digest: ")[1].split()[0]) == 64


def test_run_does_not_load_a_program(
    tmp_path: Path, dense: Path, nanoloom: Command
) -> None:
    program = tmp_path / "dense"
    assert nanoloom("compile", dense, "-d", "batch=3", "-o", program).status == 0
    refused(nanoloom("run", program), "is a program by itself; run it")
