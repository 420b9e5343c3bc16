"""Models compiled by workers: the same bytes, and errors in place of crashes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx_ir
import pytest
from onnx import parser

import nanoloom
from nanoloom import compiler
from nanoloom.cache import Cache
from nanoloom.compiler import Report, compile_kernels, partition_model
from nanoloom.options import CompileOptions
from nanoloom.target import by_name
from nanoloom.workers import pool as pools
from nanoloom.workers.pool import Pool, in_process
from tests.workers.stand_ins import Crashing

NETWORK = """
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[3, 7] x, float[7, 5] w) => (float[3, 5] y, float[7, 10] s) {
      m = MatMul(x, w)
      y = Relu(m)
      c = Concat <axis = 1> (w, w)
      s = Softmax <axis = 1> (c)
    }
"""
pytestmark = pytest.mark.compiles_anew
X, W = (
    np.random.default_rng(0).standard_normal(s, np.float32) for s in ((3, 7), (7, 5))
)


def run(root: Path, report: Report | None = None) -> np.ndarray:
    model = parser.parse_model(NETWORK).SerializeToString()
    program = nanoloom.compile(model, threads=1, cache=Cache(root), report=report)
    return program({"x": X, "w": W})["y"]


@pytest.mark.parametrize("target", ["x86-64-v3", "x86-64-v4", "neoverse-v1"])
def test_workers_make_the_same_bytes(tmp_path: Path, target: str) -> None:
    model = onnx_ir.from_proto(parser.parse_model(NETWORK))
    options, report = CompileOptions(by_name(target)), Report()
    program = partition_model(model, options, report)
    made = [
        compile_kernels(program, options, Cache(tmp_path / str(i)), report, workers)
        for i, workers in enumerate((pools.pool(), Pool(in_process)))
    ]
    assert made[0] == made[1] and len(made[0]) > 1
    assert list(made[0]) == list(program.kernels)


def test_a_report_counts_what_workers_do(tmp_path: Path) -> None:
    steps: list[tuple[str, int, int]] = []
    report = Report(progress=lambda *step: steps.append(step))
    run(tmp_path, report)
    assert {"schedule", "vector", "llvm", "object"} <= report.seconds.keys()
    assert min(report.seconds.values()) > 0 and not report.cached
    number = report.kernels
    assert number > 1
    assert steps == [("kernels", i + 1, number) for i in range(number)]


def test_a_crash_is_an_error_and_the_next_model_compiles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiler, "MakeKernel", Crashing)
    with pytest.raises(
        nanoloom.InternalError,
        match=r"kernel contraction\w+: this is a bug of nanoloom \(the compiler "
        r"crashed: SIGABRT: Cannot select: it\), not of your model; report it",
    ):
        run(tmp_path)
    monkeypatch.undo()
    y = run(tmp_path)
    assert np.allclose(y, np.maximum(X @ W, 0), rtol=1e-5, atol=1e-5)
    assert not np.allclose(y, X @ W)


def test_cached_kernels_need_no_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither does saving a model again that was compiled once."""
    run(tmp_path)

    def refuse() -> None:
        raise AssertionError("nothing is to be made")

    monkeypatch.setattr(pools, "_pool", Pool(refuse))  # type: ignore[arg-type]
    model = parser.parse_model(NETWORK).SerializeToString()
    program = nanoloom.compile(model, cache=Cache(tmp_path))
    assert program.save(tmp_path / "x.so").exists()
    assert not pools.pool()._attending
