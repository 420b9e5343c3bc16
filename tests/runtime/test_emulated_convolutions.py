"""Convolutions in vectors of any width under qemu: one file, right at every length."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import parser
from onnx.reference import ReferenceEvaluator

from nanoloom.runtime.emulation import machine, run_emulated
from nanoloom_papers.reproduce.instruction_counts import of_one_run
from tests.runtime.weighted import built

HEAD = '<ir_version: 10, opset_import: ["": 21]>'
# Numbers of channels that no vector divides; first layers, whose border is copied
# or left out; one, two, three dimensions; groups of one channel and of several.
# What is turned has no sum.
MODEL = """
all (FLOAT[1, 19, 9, 7] x, FLOAT[1, 3, 11, 8] i, FLOAT[2, 5, 21] l,
     FLOAT[1, 4, 5, 4, 6] v, FLOAT[3, 23] r, FLOAT[1, 20, 7, 6] u,
     FLOAT[1, 2, 9, 101] z,
     FLOAT[41, 37] t,
     FLOAT[37, 19, 3, 3] wa, FLOAT[21, 19, 5, 5] wb, FLOAT[33, 3, 3, 3] wc,
     FLOAT[35, 5, 4] wd, FLOAT[11, 4, 3, 3, 3] we, FLOAT[19, 13, 4, 4] wf,
     FLOAT[38, 1, 3, 3] wg, FLOAT[41, 23] wh, FLOAT[70, 19, 1, 1] wk,
     FLOAT[28, 5, 3, 3] wm, FLOAT[21, 2, 3, 4] wp,
     FLOAT[37, 2, 5, 5] wq)
 => (FLOAT[1, 37, 5, 4] a, FLOAT[1, 21, 9, 7] b, FLOAT[1, 33, 6, 4] c,
     FLOAT[2, 35, 21] d, FLOAT[1, 11, 5, 4, 6] e, FLOAT[1, 13, 18, 14] f,
     FLOAT[1, 38, 9, 7] g, FLOAT[3, 41] h, FLOAT[1, 70, 9, 7] k,
     FLOAT[1, 28, 7, 6] m, FLOAT[37, 41] o, FLOAT[7, 1, 9, 19] s,
     FLOAT[1, 21, 8, 51] p, FLOAT[1, 37, 5, 49] q)
{
    a = Conv<pads = [1, 1, 1, 1], strides = [2, 2]>(x, wa)
    b = Conv<pads = [2, 2, 2, 2]>(x, wb)
    c = Conv<pads = [1, 1, 1, 1], strides = [2, 2]>(i, wc)
    d = Conv<pads = [3, 3], dilations = [2]>(l, wd)
    e = Conv<pads = [1, 1, 1, 1, 1, 1]>(v, we)
    f = ConvTranspose<pads = [1, 1, 1, 1], strides = [2, 2]>(x, wf)
    g = Conv<pads = [1, 1, 1, 1], group = 19>(x, wg)
    h = Gemm<transB = 1>(r, wh)
    k = Conv(x, wk)
    m = Conv<pads = [1, 1, 1, 1], group = 4>(u, wm)
    n = Transpose<perm = [1, 0]>(t)
    o = Add(n, n)
    s = Transpose<perm = [3, 0, 2, 1]>(x)
    p = Conv<pads = [2, 0, 1, 3], strides = [1, 2], dilations = [2, 1]>(z, wp)
    q = Conv<pads = [2, 1, 2, 0], strides = [2, 2]>(z, wq)
}
"""
LAYER = """
layer (FLOAT[1, 48, 13, 13] x, FLOAT[64, 48, 3, 3] w) => (FLOAT[1, 64, 7, 7] y)
{ y = Conv<pads = [1, 1, 1, 1], strides = [2, 2]>(x, w) }
"""
MOST = 19 * 25  # products of a sum
LENGTHS = {
    "riscv64+v": ("vlen", (128, 256, 512, 1024)),
    "aarch64+sve": ("sve", (128, 256, 512, 1024, 2048)),
}
Arrays = dict[str, np.ndarray]


def parsed(text: str, kind: str) -> onnx.ModelProto:
    return parser.parse_model(f"{HEAD} {text.replace('FLOAT', kind)}")


def arrays(text: str) -> Arrays:
    """What a model is given, weights too."""
    random = np.random.default_rng(4)
    return {
        x.name: random.standard_normal(
            [d.dim_value for d in x.type.tensor_type.shape.dim]
        ).astype(np.float32)
        for x in parsed(text, "float").graph.input
    }


@pytest.fixture(scope="module")
def wanted() -> tuple[Arrays, Arrays]:
    """All outputs in float64, and how far rounding may lead from them: a sum of K
    products is within (K + 2) eps of the sum of their sizes."""
    model, given = ReferenceEvaluator(parsed(MODEL, "double")), arrays(MODEL)
    names = [str(name) for name in model.output_names]
    wide = {name: array.astype(np.float64) for name, array in given.items()}
    exact = model.run(None, wide)
    sizes = model.run(None, {name: abs(array) for name, array in wide.items()})
    part = (MOST + 2) * float(np.finfo(np.float32).eps)
    bounds = [part * np.asarray(size) for size in sizes]
    return (
        dict(zip(names, map(np.asarray, exact), strict=True)),
        dict(zip(names, bounds, strict=True)),
    )


@pytest.mark.drawn(one_in=2)
@pytest.mark.parametrize("name", LENGTHS)
def test_one_file_at_every_length(
    name: str, wanted: tuple[Arrays, Arrays], tmp_path: Path
) -> None:
    program, path = built(parsed(MODEL, "float"), arrays(MODEL), name, tmp_path)
    given, (exact, bounds) = arrays(MODEL), wanted
    inputs = [given[x.name] for x in program.inputs]
    kinds = {x.name: x.dtype for x in program.outputs}
    assert len(kinds) == len(exact)
    word, lengths = LENGTHS[name]
    for bits in lengths:
        got = run_emulated(machine(f"{name}:{word}={bits}"), path, inputs, kinds)
        for output, want in exact.items():
            assert (abs(got[output] - want) <= bounds[output]).all(), (bits, output)
            wrong = np.roll(got[output], 1, axis=-1)
            assert not (abs(wrong - want) <= bounds[output]).all()


@pytest.mark.drawn(one_in=2)
@pytest.mark.parametrize("name", LENGTHS)
def test_wider_vectors_execute_fewer_instructions(
    name: str, tmp_path: Path, plugin: Path
) -> None:
    _, path = built(parsed(LAYER, "float"), arrays(LAYER), name, tmp_path)
    np.save(image := tmp_path / "x.npy", arrays(LAYER)["x"])
    word, lengths = LENGTHS[name]
    one, two, four = (
        of_one_run(plugin, machine(f"{name}:{word}={bits}"), path, [image]).all
        for bits in lengths[:3]
    )
    assert one >= 1.8 * two and one >= 3.2 * four
