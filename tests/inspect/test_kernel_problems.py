"""check --deep: every kernel that fails, with its layers, and none that does not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from onnx import parser

from nanoloom import compiler
from nanoloom.cache import Cache
from nanoloom.errors import Error
from nanoloom.inspect import kernel_problems
from nanoloom.kernels.program import Kernel
from nanoloom.options import CompileOptions
from nanoloom.schedule.language import Schedule, Tile
from nanoloom.workers import batch as batches
from nanoloom.workers.jobs import MakeKernel
from tests.cli.conftest import Command, cache, nanoloom

__all__ = ["cache", "nanoloom"]

TWO = """<ir_version: 8, opset_import: ["" : 17]>
g (float[3, 7] x, float[7, 5] w) => (float[3, 5] y, float[7, 10] s) {
  m = MatMul(x, w)
  y = Relu(m)
  c = Concat <axis = 1> (w, w)
  s = Softmax <axis = 1> (c)
}
"""


def write(folder: Path) -> Path:
    model = folder / "model.onnx"
    model.write_bytes(parser.parse_model(TWO).SerializeToString())
    return model


def found(nanoloom: Command, model: Path) -> list[dict[str, str]]:
    said = nanoloom("check", model, "--deep", "--json")
    answer = json.loads(said.out)
    assert said.status == bool(answer["problems"])
    return answer["problems"]


def test_what_compiles_is_kept(
    tmp_path: Path, nanoloom: Command, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = write(tmp_path)
    monkeypatch.setenv("NANOLOOM_CACHE", str(tmp_path / "kept"))
    assert found(nanoloom, model) == []
    kinds = {entry.kind for entry in Cache(tmp_path / "kept").entries()}
    assert "kernels" in kinds
    with monkeypatch.context() as patch:
        patch.setattr(batches.Batch, "ask", None)  # nothing is made again
        assert found(nanoloom, model) == []


def test_each_kernel_that_fails(
    tmp_path: Path, nanoloom: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a schedule, with one that does not fit, and the others not at all."""
    model = write(tmp_path)
    monkeypatch.setenv("NANOLOOM_CACHE", str(tmp_path / "kept"))
    right = kernel_problems.job_of

    def wrong(kernel: Kernel, options: CompileOptions) -> MakeKernel:
        assert "math.exp" not in kernel.text, "no such row"
        return right(kernel, options)

    monkeypatch.setattr(kernel_problems, "job_of", wrong)
    problems = found(nanoloom, model)
    assert len(problems) == 1
    assert problems[0]["reason"].startswith("AssertionError: no such row")
    assert "Softmax" in problems[0]["node"]
    assert nanoloom("check", model).status == 0  # which looks at nodes alone

    monkeypatch.setattr(kernel_problems, "job_of", right)

    def unfit(nest: object, target: object) -> Schedule:
        return Schedule((Tile("nowhere", (4,)),))

    monkeypatch.setattr(compiler, "choose", unfit)
    problems = found(nanoloom, model)
    assert len(problems) == 3
    assert all("kernel" in problem["node"] for problem in problems)


def test_a_cut_that_fails(
    tmp_path: Path, nanoloom: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise Error("no kernel fits", where="layer m")

    monkeypatch.setattr(kernel_problems, "partition_model", refused)
    (problem,) = found(nanoloom, write(tmp_path))
    assert (problem["node"], problem["reason"]) == ("layer m", "no kernel fits")
