"""An If of branches of other ranks: what reads it is computed in both."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import parser

import nanoloom
from nanoloom.cache import Cache
from nanoloom.errors import DataDependent, InputError
from tests.fuzz.cases import Bench
from tests.fuzz.families import check_family

HEAD = '<ir_version: 10, opset_import: ["" : 18]>'
BRANCHES = """<then_branch = t () => (a) { a = ReduceSum<keepdims = 0>(x, last) },
    else_branch = e () => (b) { b = Neg(x) }>"""


def program(reader: str, folder: Path) -> nanoloom.Program:
    text = f"""{HEAD} g (float[rows, 4] x, float[2] d, float[4, 4] w) => (float[p] y)
        <int64[1] last = {{-1}}, int64[1] flat = {{-1}}, float zero = {{0}}> {{
        sum = ReduceSum<keepdims = 0>(d) big = Greater(sum, zero)
        part = If (big) {BRANCHES} {reader} }}"""
    return nanoloom.compile(parser.parse_model(text), cache=Cache(folder))


def given(decides: float, rows: int = 3) -> dict[str, np.ndarray]:
    x = np.arange(4 * rows, dtype=np.float32).reshape(rows, 4)
    d = np.full(2, decides, np.float32)
    return {"x": x, "d": d, "w": np.eye(4, dtype=np.float32)}


@pytest.mark.parametrize("seed", range(6))
def test_the_same_as_onnxruntime(seed: int, tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.begin("ranks")
    outcome = check_family("ranks", seed, bench)
    assert outcome.status == "passed", outcome.finding


def test_one_program_of_open_sizes(tmp_path: Path) -> None:
    made = program("y = Reshape(part, flat)", tmp_path)
    for rows in (3, 1, 8):
        x = given(1, rows)["x"]
        assert np.array_equal(made(given(1, rows))["y"], x.sum(1))
        assert np.array_equal(made(given(-1, rows))["y"], -x.ravel())
    assert not made.open.reason


def test_a_reader_that_fits_one_branch(tmp_path: Path) -> None:
    """It is an error where the other one is taken, and nothing is left of it."""
    made = program("m = Gemm(part, w) y = Reshape(m, flat)", tmp_path)
    for _ in range(2):
        assert np.array_equal(made(given(-1))["y"], -given(-1)["x"].ravel())
        with pytest.raises(InputError, match=r"node .*\(Gemm\): \S+"):
            made(given(1))


def test_results_of_other_ranks_are_refused(tmp_path: Path) -> None:
    ranks = r"is of shape \(3,\) .* of shape \(3, 4\)"
    with pytest.raises(DataDependent, match=ranks):
        program("y = Relu(part)", tmp_path)(given(1))
