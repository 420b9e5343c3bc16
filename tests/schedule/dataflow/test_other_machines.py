"""Dataflows in executables for other machines, under qemu: at every vector length."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import parser

from nanoloom.cache import Cache
from nanoloom.compile_program import compile
from nanoloom.options import CompileOptions
from nanoloom.runtime.emulation import machine, run_emulated
from nanoloom.schedule.dataflow.dataflow import parse
from tests.c_libraries import lend

# Three depthwise convolutions, for a dataflow of each anchor.
MODEL = """
<ir_version: 10, opset_import: ["": 21]>
layers (float[1, 11, 9, 12] a, float[11, 1, 3, 3] u, float[1, 13, 9, 12] b,
        float[13, 1, 3, 3] v, float[1, 21, 9, 12] c, float[21, 1, 3, 3] w)
    => (float[1, 11, 7, 10] x, float[1, 13, 7, 10] y, float[1, 21, 4, 5] z)
{
    x = Conv <group = 11> (a, u)
    y = Conv <group = 13> (b, v)
    z = Conv <group = 21, strides = [2, 2]> (c, w)
}
"""
LAYERS = (("a", "u", "x", 1), ("b", "v", "y", 1), ("c", "w", "z", 2))
FLOWS = ("output; weight 4; input 3", "weight; output 5; input 1", "input; output 2")


@pytest.mark.drawn(one_in=4, kind=lambda spec: "+" in spec)
@pytest.mark.parametrize(
    "spec",
    ["riscv64+v:vlen=128", "riscv64+v:vlen=512", "aarch64+sve:sve=256", "aarch64"],
)
def test_the_numbers_are_right(tmp_path: Path, spec: str) -> None:
    random, where = np.random.default_rng(0), machine(spec)
    cache, model = Cache(tmp_path / "cache"), parser.parse_model(MODEL)
    lend(where.target.arch, cache)
    plain = compile(model, options=CompileOptions(where.target), cache=cache)
    names = [n for n, nest in plain.nests().items() if nest.products]
    chosen = tuple(zip(names, map(parse, FLOWS), strict=True))
    options = CompileOptions(where.target, schedules=chosen)
    program = compile(model, options=options, cache=cache)
    values = {
        x.name: random.standard_normal(tuple(map(int, x.shape)), np.float32)
        for x in program.inputs
    }
    path = program.save(tmp_path / "layers", form="executable")
    kinds = {x.name: x.dtype for x in program.outputs}
    got = run_emulated(where, path, list(values.values()), kinds, threads=2)
    for image, weights, made, step in LAYERS:
        high, wide = got[made].shape[2:]
        right, bound = np.zeros(got[made].shape), np.zeros(got[made].shape)
        for r, q in np.ndindex(3, 3):
            rows = slice(r, r + step * (high - 1) + 1, step)
            columns = slice(q, q + step * (wide - 1) + 1, step)
            part = values[image][:, :, rows, columns].astype(np.float64)
            here = part * values[weights][:, 0, r, q, None, None]
            right, bound = right + here, bound + abs(here)
        assert (abs(got[made] - right) <= 11 * np.finfo(np.float32).eps * bound).all()
        assert abs(right).max() > 1
