"""Rows that are sorted under qemu: each way of it, for machines with and without
vectors of any width."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import parser

from nanoloom.cache import Cache
from nanoloom.compile_program import compile
from nanoloom.options import CompileOptions
from nanoloom.runtime.emulation import machine, run_emulated
from tests.c_libraries import lend

MODEL = """<ir_version: 10, opset_import: ["": 21]>
sorted (float[3, 701] x, int64[997] n, float[3, 37] y)
    => (int64[3, 7] a, int64[3, 100] b, int64[997] c, int64[3, 37] d, int64[3, 3] e)
<int64[1] few = {7}, int64[1] more = {100}, int64[1] all = {997}, int64[1] row = {37},
 int64[1] first = {3}>
{
    v, a = TopK(x, few)
    w, b = TopK<largest = 0>(x, more)
    u, c = TopK<largest = 0>(n, all)
    t, d = TopK<largest = 0>(y, row)
    s, e = TopK(y, first)
}
"""
LENGTHS = {
    "riscv64+v": (":vlen=128", ":vlen=1024"),
    "aarch64+sve": (":sve=128", ":sve=512"),
    "riscv64": ("",),
}


@pytest.mark.drawn(one_in=3, kind=lambda name: "+" in name)
@pytest.mark.parametrize("name", LENGTHS)
def test_each_way_of_sorting(name: str, tmp_path: Path) -> None:
    random = np.random.default_rng(9)
    x = np.round(random.standard_normal((3, 701)) * 40).astype(np.float32)
    n = random.integers(-(2**40), 2**40, 997) // 2**31
    y = np.round(x[:, :37] / 20)
    cache, target = Cache(tmp_path / "cache"), machine(name).target
    lend(target.arch, cache)
    program = compile(
        parser.parse_model(MODEL), options=CompileOptions(target), cache=cache
    )
    path = program.save(tmp_path / "sorted", form="executable")
    wanted = {
        "a": np.argsort(-x, kind="stable")[:, :7],
        "b": np.argsort(x, kind="stable")[:, :100],
        "c": np.argsort(n, kind="stable"),
        "d": np.argsort(y, kind="stable"),
        "e": np.argsort(-y, kind="stable")[:, :3],
    }
    kinds = {output: array.dtype for output, array in wanted.items()}
    for length in LENGTHS[name]:
        got = run_emulated(machine(f"{name}{length}"), path, [x, n, y], kinds)
        for output, right in wanted.items():
            np.testing.assert_array_equal(got[output], right)
