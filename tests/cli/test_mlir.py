"""MLIR files on the command line: run, compile, and what needs an ONNX model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import Command
from tests.notation.programs import normal
from tests.notation.test_mlir_text import LAYER, wanted


@pytest.fixture
def layer(tmp_path: Path) -> Path:
    path = tmp_path / "layer.mlir"
    path.write_text(LAYER)
    return path


def test_a_file_is_run_and_so_is_its_library(
    layer: Path, tmp_path: Path, nanoloom: Command
) -> None:
    x, w = normal(9, 17), normal(17, 21, seed=1)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "w.npy", w)
    said = nanoloom("compile", layer, "-o", tmp_path / "layer.so")
    assert said.status == 0, said.err
    for model in (layer, tmp_path / "layer.so"):
        inputs = ("-i", f"arg0={tmp_path}/x.npy", "-i", f"arg1={tmp_path}/w.npy")
        said = nanoloom("run", model, *inputs, "-o", f"result0={tmp_path}/y.npy")
        assert said.status == 0, said.err
        result, room = wanted(x, w)
        assert (abs(np.load(tmp_path / "y.npy") - result) <= room).all()


def test_its_kernels_are_called_by_lines(layer: Path, nanoloom: Command) -> None:
    said = nanoloom("compile", layer, "--emit", "kernels", "-o", "-")
    assert said.status == 0, said.err
    assert "// line 8: contraction_f32_9x21x17" in said.out


def test_a_mistake_is_one_sentence(tmp_path: Path, nanoloom: Command) -> None:
    path = tmp_path / "wrong.mlir"
    path.write_text(LAYER.replace("%fill :", "%fil :"))
    said = nanoloom("run", path)
    assert said.status == 1
    assert "wrong.mlir:9: is no valid MLIR: use of undeclared SSA" in said.told


@pytest.mark.parametrize("verb", ["verify", "bench"])
def test_nothing_else_runs_it(layer: Path, nanoloom: Command, verb: str) -> None:
    said = nanoloom(verb, layer)
    assert said.status == 1
    assert "layer.mlir: is no ONNX model, so there is nothing to compare" in said.told


def test_it_has_no_graph(layer: Path, nanoloom: Command) -> None:
    said = nanoloom("compile", layer, "--emit", "graph", "-o", "-")
    assert (said.status, said.out) == (1, "")
    assert "it has no graph: linalg is its first stage" in said.told
