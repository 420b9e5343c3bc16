"""--strategy and what goes with it; --layout and --search."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.cli.conftest import Command
from tests.linalg.single import model_of
from tests.notation.programs import normal
from tests.notation.test_mlir_text import LAYER, wanted


@pytest.fixture
def layer(tmp_path: Path) -> Path:
    path = tmp_path / "layer.mlir"
    path.write_text(LAYER)
    return path


@pytest.mark.parametrize("strategy", ["affine", "plain", "oml", "onnx-mlir"])
def test_a_model_runs_by_each(
    layer: Path, tmp_path: Path, nanoloom: Command, strategy: str
) -> None:
    x, w = normal(9, 17), normal(17, 21, seed=1)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "w.npy", w)
    inputs = ("-i", f"arg0={tmp_path}/x.npy", "-i", f"arg1={tmp_path}/w.npy")
    way = ("--strategy", strategy, "--vlen", 4, "--unroll-m", 2, "--unroll-n", 2)
    said = nanoloom("run", layer, *inputs, *way, "-o", f"result0={tmp_path}/y.npy")
    assert said.status == 0, said.err
    result, room = wanted(x, w)
    assert (abs(np.load(tmp_path / "y.npy") - result) <= room).all()


def test_a_stage_is_shown(layer: Path, nanoloom: Command) -> None:
    way = ("--strategy", "affine", "--vlen", "8", "--unroll-m", "3", "--unroll-n", "2")
    said = nanoloom("compile", layer, *way, "--emit", "vector", "-o", "-")
    assert said.status == 0, said.err
    assert "vector<16xf32>" in said.out and "math.fma" in said.out
    usual = nanoloom("compile", layer, "--emit", "vector", "-o", "-")
    assert usual.out != said.out


WRONG = [
    (("--strategy", "fast"), 2, "fast is none of default, affine, plain, oml"),
    (("--vlen", "8"), 2, "the default has schedules instead"),
    (("--strategy", "affine", "--vlen", "6"), 2, "6 is no power of two"),
    (("--layout", "nchw"), 2, "there is no layout nchw"),
    (("--search", "-1"), 2, "greater than or equal to 0"),
    (("--strategy", "affine", "--search", "1"), 1, "kernels have no schedules"),
]


@pytest.mark.parametrize(("given", "status", "reason"), WRONG)
def test_what_does_not_go(
    layer: Path, nanoloom: Command, given: tuple[str, ...], status: int, reason: str
) -> None:
    said = nanoloom("run", layer, *given)
    assert said.status == status and reason in said.told


def test_there_is_no_schedule_to_show(layer: Path, nanoloom: Command) -> None:
    way = ("--strategy", "affine", "--emit", "schedule", "-o", "-")
    said = nanoloom("compile", layer, *way)
    assert said.status == 1
    assert "kernels have no schedules with the strategy affine" in said.told


def test_a_library_is_lowered_already(
    layer: Path, tmp_path: Path, nanoloom: Command
) -> None:
    library = tmp_path / "layer.so"
    assert nanoloom("compile", layer, "--strategy", "plain", "-o", library).status == 0
    assert nanoloom("run", library).status == 0
    said = nanoloom("run", library, "--strategy", "affine")
    assert said.status == 2 and "kernels of a compiled library are made" in said.told


@pytest.mark.parametrize("way", [("--search", "1"), ("--layout", "first")])
def test_another_way_of_the_same(
    tmp_path: Path, nanoloom: Command, way: tuple[str, str]
) -> None:
    """Small whole numbers: exact in any order of any loops."""
    x = np.rint(4 * normal(1 * 24, 9 * 9)).reshape(1, 24, 9, 9)
    np.save(tmp_path / "x.npy", x)
    w = pointwise(tmp_path)
    given = ("-i", f"x={tmp_path}/x.npy", "-o", f"y={tmp_path}/y.npy")
    said = nanoloom("run", tmp_path / "layer.onnx", *given, *way)
    assert said.status == 0, said.err
    right = np.einsum("fc,nchw->nfhw", w, x)
    assert (np.load(tmp_path / "y.npy") == right).all() and right.any()


def test_layouts_are_shown(tmp_path: Path, nanoloom: Command) -> None:
    pointwise(tmp_path)
    file = tmp_path / "layer.onnx"
    said = nanoloom("compile", file, "--emit", "layout", "--layout", "first", "-o", "-")
    assert said.status == 0, said.err
    assert "tested: channels first" in said.out and "9x9x40" in said.out


def test_nothing_is_said_where_nothing_lies_otherwise(
    layer: Path, nanoloom: Command
) -> None:
    said = nanoloom("compile", layer, "--emit", "layout", "-o", "-")
    assert said.status == 0, said.err
    assert said.out.startswith("# no tensor between kernels has channels")
    said = nanoloom("compile", layer, "--layout", "7", "--emit", "layout", "-o", "-")
    assert said.out.startswith("# no tensor between kernels can have blocks of 7")


def pointwise(folder: Path) -> np.ndarray:
    """layer.onnx, a convolution of 24 channels by 40 filters of one pixel: these."""
    w = np.rint(4 * normal(40, 24, seed=1))
    x = np.zeros((1, 24, 9, 9), np.float32)
    arrays = [x, w.reshape(40, 24, 1, 1)]
    model, _ = model_of("Conv", arrays, {}, constants=(1,))
    model.graph.node[0].input[0] = model.graph.input[0].name = "x"
    model.graph.node[0].output[0] = model.graph.output[0].name = "y"
    onnx.save(model, folder / "layer.onnx")
    return w
