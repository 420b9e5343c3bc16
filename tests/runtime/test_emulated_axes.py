"""Whatever lies across vectors, or is shorter than one, in vectors of any width under
qemu: right at every length, and fewer instructions with longer ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import parser
from onnx.reference import ReferenceEvaluator

from nanoloom.runtime.emulation import machine, run_emulated
from nanoloom_papers.reproduce.instruction_counts import of_one_run
from tests.runtime.test_emulated_movement import LENGTHS, executable

HEAD = '<ir_version: 11, opset_import: ["": 22]>'
# Sizes that no vector divides.  Products of all lanes; running sums along rows; turned
# and repeated numbers of all widths; windows over planes.
MODEL = f"""{HEAD}
axes (float[9, 133] x, int32[5, 71] n, float16[37, 59] h, uint8[37, 59] u,
      bool[37, 59] t, int64[37, 59] l, float[1, 23, 31, 3] image,
      float[1, 3, 29, 37] planes, float[1, 5, 69] text)
 => (float[9, 1] prod, int32[5, 1] whole, float[9, 133] running,
     int32[5, 71] back, float16[59, 37] turned_h, uint8[59, 37] turned_u,
     bool[59, 37] turned_t, int64[59, 37] turned_l, float[1, 3, 23, 31] first,
     float[1, 29, 37, 3] last, float[1, 3, 58, 111] repeated,
     float[1, 3, 14, 18] top, float[1, 3, 29, 37] mean, float[1, 3, 29, 37] depth,
     float[1, 5, 35] short)
<float[3, 1, 3, 3] w = {{{", ".join(str(n % 7 - 3) for n in range(27))}}},
 float[3] b = {{1, 2, 3}}, float[5, 1, 3] v = {{{", ".join("321" * 5)}}}>
{{
    one = Constant<value_ints = [1]>()
    axis = Constant<value_int = 1>()
    prod = ReduceProd(x, one)
    whole = ReduceProd(n, one)
    running = CumSum(x, axis)
    back = CumSum<reverse = 1, exclusive = 1>(n, axis)
    turned_h = Transpose(h)
    turned_u = Transpose(u)
    turned_t = Transpose(t)
    turned_l = Transpose(l)
    first = Transpose<perm = [0, 3, 1, 2]>(image)
    last = Transpose<perm = [0, 2, 3, 1]>(planes)
    scales = Constant<value_floats = [1.0, 1.0, 2.0, 3.0]>()
    repeated = Resize<mode = "nearest">(planes, , scales)
    top = MaxPool<kernel_shape = [3, 3], strides = [2, 2]>(planes)
    mean = AveragePool<kernel_shape = [3, 3], pads = [1, 1, 1, 1]>(planes)
    made = Conv<pads = [1, 1, 1, 1], group = 3>(planes, w, b)
    depth = Relu(made)
    short = Conv<pads = [1, 1], strides = [2], group = 5>(text, v)
}}
"""
# What is computed in another order than the reference does, and its bound.
ROUNDED = {"prod", "running", "mean", "depth", "short"}


def inputs() -> dict[str, np.ndarray]:
    """Seeded; products stay finite and within integers."""
    random, made = np.random.default_rng(4), dict[str, np.ndarray]()
    for x in parser.parse_model(MODEL).graph.input:
        kind = onnx.helper.tensor_dtype_to_np_dtype(x.type.tensor_type.elem_type)
        shape = [d.dim_value for d in x.type.tensor_type.shape.dim]
        numbers = random.standard_normal(shape)
        if kind.kind in "iub":
            numbers = random.integers(0, 2 if kind.kind == "b" else 100, shape)
        made[x.name] = numbers.astype(kind)
    made["x"] = 1 + made["x"] / 16
    made["n"] = made["n"] * 2 - 99  # odd: a product wraps, and is never zero
    return made


def right(got: np.ndarray, want: np.ndarray, name: str) -> bool:
    if name not in ROUNDED:
        return bool((got == want).all())
    return bool((abs(got - want) <= 200 * 2.0**-24 * abs(want).max()).all())


@pytest.mark.drawn(one_in=2)
@pytest.mark.parametrize("name", LENGTHS)
def test_one_file_at_every_length(name: str, tmp_path: Path) -> None:
    model, given = parser.parse_model(MODEL), inputs()
    made = ReferenceEvaluator(model).run(None, given)
    wanted = {
        x.name: np.asarray(y) for x, y in zip(model.graph.output, made, strict=True)
    }
    path = executable(model, name, tmp_path)
    word, lengths = LENGTHS[name]
    for bits in lengths:
        where = machine(f"{name}:{word}={bits}")
        got = run_emulated(where, path, list(given.values()), wanted)
        for output, want in wanted.items():
            assert right(got[output], want, output), (bits, output)
            assert not right(np.roll(got[output], 1, -2), want, output)


# Inputs, outputs and nodes of a mechanism each; how many times fewer instructions from
# 128 bits to 512 at least, on RISC-V and on Arm, with what stands around the loops.
COUNTED = {
    "product of all lanes": (
        "float[3, 4099] x", "float[3, 1] y",
        "a = Constant<value_ints = [1]>() y = ReduceProd(x, a)",
    ),
    "running sum along rows": (
        "float[260, 31] x", "float[260, 31] y",
        "a = Constant<value_int = 1>() y = CumSum(x, a)",
    ),
    "turned bytes": (
        "uint8[131, 515] x", "uint8[515, 131] y", "y = Transpose(x)",
    ),
    "repeated numbers": (
        "float[1, 3, 13, 117] x", "float[1, 3, 13, 234] y",
        """s = Constant<value_floats = [1.0, 1.0, 1.0, 2.0]>()
        y = Resize<mode = "nearest">(x, , s)""",
    ),
    "rows of one axis": (
        "float[71, 3, 13] x, float[71, 3, 13] z", "float[71, 3, 13] y", "y = Add(x, z)",
    ),
    "pool of planes": (
        "float[1, 3, 31, 117] x", "float[1, 3, 15, 58] y",
        "y = MaxPool<kernel_shape = [3, 3], strides = [2, 2]>(x)",
    ),
    "convolution of planes": (
        "float[1, 3, 31, 61] x, float[3, 1, 3, 3] w", "float[1, 3, 29, 59] y",
        "y = Conv<group = 3>(x, w)",
    ),
}  # fmt: skip
FEWER = 1.8


@pytest.mark.drawn(one_in=4)
@pytest.mark.parametrize("name", ["riscv64+v", "aarch64+sve"])
@pytest.mark.parametrize("kernel", COUNTED)
def test_wider_vectors_execute_fewer_instructions(
    kernel: str, name: str, tmp_path: Path, plugin: Path
) -> None:
    given, made, nodes = COUNTED[kernel]
    model = parser.parse_model(f"{HEAD} k ({given}) => ({made}) {{ {nodes} }}")
    path = executable(model, name, tmp_path)
    files: list[Path] = []
    for x in model.graph.input:
        kind = onnx.helper.tensor_dtype_to_np_dtype(x.type.tensor_type.elem_type)
        shape = [d.dim_value for d in x.type.tensor_type.shape.dim]
        files.append(tmp_path / f"{x.name}.npy")
        np.save(files[-1], np.ones(shape, kind))
    word, lengths = LENGTHS[name]
    first, last = (
        of_one_run(plugin, machine(f"{name}:{word}={lengths[n]}"), path, files, 8).all
        for n in (0, 2)
    )
    assert first >= FEWER * last
