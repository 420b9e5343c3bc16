"""Products of bytes in vectors of any width under qemu: exact at every length."""

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
# Signs of all kinds, a row alone, a sum shorter than a group, batches; sizes that no
# vector divides.  Convolutions of few channels and of many.
MODEL = """
all (uint8[13, 71] u, int8[13, 71] s, uint8[1, 131] row, int8[9, 3] short,
     int8[2, 5, 37] batch, uint8[2, 37, 21] other, uint8[1, 19, 9, 7] image,
     uint8[1, 3, 11, 8] first,
     int8[71, 53] wa, uint8[71, 53] wb, int8[131, 77] wc, int8[3, 45] wd,
     int8[37, 19, 3, 3] we, int8[33, 3, 3, 3] wf, int8[21, 19, 1, 1] wg,
     uint8 wz)
 => (int32[13, 53] us, int32[13, 53] su, int32[13, 53] ss, int32[13, 53] uu,
     int32[1, 77] r, int32[9, 45] k, int32[2, 5, 21] b, int32[1, 37, 5, 4] c,
     int32[1, 33, 6, 4] d, int32[1, 21, 9, 7] e)
{
    us = MatMulInteger(u, wa, wz)
    su = MatMulInteger(s, wb)
    ss = MatMulInteger(s, wa)
    uu = MatMulInteger(u, wb)
    r = MatMulInteger(row, wc)
    k = MatMulInteger(short, wd)
    b = MatMulInteger(batch, other)
    c = ConvInteger<pads = [1, 1, 1, 1], strides = [2, 2]>(image, we, wz)
    d = ConvInteger<pads = [1, 1, 1, 1], strides = [2, 2]>(first, wf)
    e = ConvInteger(image, wg)
}
"""
# Not on RISC-V, where qemu 7.2 ends at the rounding.
QUANTIZED = """
all (uint8[13, 71] u, uint8[1, 19, 9, 7] image, int8[71, 53] wa, int8[37, 19, 3, 3] we)
 => (uint8[13, 53] q, uint8[1, 37, 5, 4] c)
{
    fine = Constant<value = float {0.05}>()
    coarse = Constant<value = float {41.0}>()
    signed = Constant<value = int8 {0}>()
    zero = Constant<value = uint8 {7}>()
    q = QLinearMatMul(u, fine, zero, wa, fine, signed, coarse, zero)
    c = QLinearConv<pads = [1, 1, 1, 1], strides = [2, 2]>
        (image, fine, zero, we, fine, signed, coarse, zero)
}
"""
LAYERS = {
    "bytes": """l (uint8[64, 256] x, int8[256, 96] w) => (int32[64, 96] y)
        { y = MatMulInteger(x, w) }""",
    "image": """l (uint8[1, 24, 10, 10] x, int8[96, 24, 3, 3] w)
        => (int32[1, 96, 10, 10] y)
        { y = ConvInteger<pads = [1, 1, 1, 1]>(x, w) }""",
}
LENGTHS = {
    "riscv64+v": ("vlen", (128, 256, 512, 1024)),
    "aarch64+sve": ("sve", (128, 256, 512, 1024, 2048)),
    "armv9-sve2+i8mm": ("sve", (128, 512)),
}
Arrays = dict[str, np.ndarray]


def arrays(made: onnx.ModelProto) -> Arrays:
    """What a model is given, weights too: bytes of all values."""
    random, found = np.random.default_rng(6), Arrays()
    for info in made.graph.input:
        kind = onnx.helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
        shape = [d.dim_value for d in info.type.tensor_type.shape.dim]
        limits = np.iinfo(kind)
        array = random.integers(limits.min, limits.max + 1, shape).astype(kind)
        found[info.name] = np.asarray(array)
    return found


@pytest.mark.drawn
@pytest.mark.parametrize(
    ("name", "text"),
    [*((name, MODEL) for name in LENGTHS), ("aarch64+sve", QUANTIZED)],
    ids=[*LENGTHS, "quantized"],
)
def test_sums_are_exact_at_every_length(name: str, text: str, tmp_path: Path) -> None:
    made = parser.parse_model(f"{HEAD} {text}")
    given, model = arrays(made), ReferenceEvaluator(made)
    exact = dict(zip(map(str, model.output_names), model.run(None, given), strict=True))
    program, path = built(made, given, name, tmp_path)
    inputs = [given[x.name] for x in program.inputs]
    kinds = {x.name: x.dtype for x in program.outputs}
    word, lengths = LENGTHS[name]
    for bits in lengths:
        got = run_emulated(machine(f"{name}:{word}={bits}"), path, inputs, kinds)
        for output, want in exact.items():
            assert (got[output] == want).all(), (bits, output)
            assert got[output].dtype == np.asarray(want).dtype


@pytest.mark.drawn
@pytest.mark.parametrize("name", ["riscv64+v", "aarch64+sve"])
@pytest.mark.parametrize("layer", LAYERS)
def test_wider_vectors_execute_fewer_instructions(
    layer: str, name: str, tmp_path: Path, plugin: Path
) -> None:
    made = parser.parse_model(f"{HEAD} {LAYERS[layer]}")
    given = arrays(made)
    _, path = built(made, given, name, tmp_path)
    np.save(image := tmp_path / "x.npy", given["x"])
    word, lengths = LENGTHS[name]
    one, two, four = (
        of_one_run(plugin, machine(f"{name}:{word}={bits}"), path, [image]).all
        for bits in lengths[:3]
    )
    assert one >= 1.6 * two and one >= 2.5 * four
