"""Products of f16 and bf16 under qemu, in vectors of any width: one file for each."""

from __future__ import annotations

import shutil
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from onnx import parser

from nanoloom.api.program import Program
from nanoloom.runtime.emulation import machine, run_emulated
from nanoloom_papers.reproduce.instruction_counts import of_one_run
from tests.runtime.weighted import built

HEAD = '<ir_version: 10, opset_import: ["": 22]>'
# Rows for several tiles, few, and one alone; a sum that is cut; batches; a window; the
# same with weights.
MODEL = """
all (KIND[37, 71] a, KIND[71, 53] b, KIND[1, 71] row, KIND[2, 5, 37] c,
     KIND[2, 37, 21] d, KIND[3, 1500] e, KIND[1500, 45] f, KIND[1, 19, 9, 7] x,
     KIND[23, 19, 3, 3] v, KIND[71, 53] wb, KIND[1500, 45] wf, KIND[23, 19, 3, 3] ww)
 => (KIND[37, 53] ab, KIND[1, 53] rb, KIND[2, 5, 21] cd, KIND[3, 45] ef,
     KIND[1, 23, 5, 4] xv, KIND[37, 53] awb, KIND[1, 53] rwb, KIND[3, 45] ewf,
     KIND[1, 23, 5, 4] xww)
{
    ab = MatMul(a, b)
    rb = MatMul(row, b)
    cd = MatMul(c, d)
    ef = MatMul(e, f)
    xv = Conv<pads = [1, 1, 1, 1], strides = [2, 2]>(x, v)
    awb = MatMul(a, wb)
    rwb = MatMul(row, wb)
    ewf = MatMul(e, wf)
    xww = Conv<pads = [1, 1, 1, 1], strides = [2, 2]>(x, ww)
}
"""
LAYER = "l (KIND[32, 128] x, KIND[128, 96] v) => (KIND[32, 96] y) { y = MatMul(x, v) }"
# In ONNX's words; a unit of rounding, and of the smallest numbers.
KINDS = {
    "float16": (np.dtype(np.float16), 2.0**-11, 2.0**-25),
    "bfloat16": (np.dtype(ml_dtypes.bfloat16), 2.0**-8, 2.0**-134),
}
LENGTHS = {
    "riscv64+v": ("vlen", (128, 256, 512, 1024)),
    "riscv64+v+zvfh": ("vlen", (128, 512)),
    "riscv64+v+zvfbfwma": ("vlen", (128, 512)),
    "aarch64+sve": ("sve", (128, 256, 512, 2048)),
    "aarch64+sve+bf16": ("sve", (128, 512)),
}
Arrays = dict[str, np.ndarray]
Pair = tuple[np.ndarray, np.ndarray]


def executable(
    text: str, kind: str, name: str, folder: Path
) -> tuple[Program, Path, Arrays]:
    """An executable, and arrays for its inputs; those with a w are in it."""
    model = parser.parse_model(f"{HEAD} {text.replace('KIND', kind)}")
    random, dtype = np.random.default_rng(8), KINDS[kind][0]
    given: Arrays = {}
    for x in model.graph.input:
        shape = [d.dim_value for d in x.type.tensor_type.shape.dim]
        given[x.name] = random.standard_normal(shape).astype(np.float32).astype(dtype)
    return *built(model, given, name, folder), given


def windows(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """MODEL's convolution, in the arrays' own type."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    every = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    return np.einsum("nchwij,fcij->nfhw", every[:, :, ::2, ::2], w)


def expected(v: Arrays, one: float, least: float) -> dict[str, Pair]:
    """Each output in float64, and how far rounding may lead from it: sums of K products
    in f32, and the last step to 16 bits."""
    wide = {name: array.astype(np.float64) for name, array in v.items()}
    pairs = {"ab": ("a", "b"), "rb": ("row", "b"), "cd": ("c", "d"), "ef": ("e", "f")}
    pairs |= {"awb": ("a", "wb"), "rwb": ("row", "wb"), "ewf": ("e", "wf")}
    found: dict[str, Pair] = {}
    for output, (left, right) in pairs.items():
        x, y = wide[left], wide[right]
        off = (x.shape[-1] + 2) * 2.0**-23 * (abs(x) @ abs(y))
        exact = np.asarray(x @ y)
        found[output] = exact, one * abs(exact) + 2 * off + least
    for name in ("v", "ww"):
        image, filters = wide["x"], wide[name]
        exact, sizes = windows(image, filters), windows(abs(image), abs(filters))
        off = (19 * 9 + 2) * 2.0**-23 * sizes
        found[f"x{name}"] = exact, one * abs(exact) + 2 * off + least
    return found


def is_emulated(name: str) -> bool:
    """Whether the emulator knows the CPU: qemu 7.2 has no 16-bit floats of RISC-V."""
    where = machine(name)
    if shutil.which(where.command[0]) is None:
        return True  # it is missed where it runs
    return all(f"{x}=true" in where.call()[2] for x in where.asked)


@pytest.mark.drawn
@pytest.mark.parametrize("name", list(filter(is_emulated, LENGTHS)))
@pytest.mark.parametrize("kind", KINDS)
def test_sums_are_right_at_every_length(kind: str, name: str, tmp_path: Path) -> None:
    _, one, least = KINDS[kind]
    program, path, given = executable(MODEL, kind, name, tmp_path)
    inputs = [given[x.name] for x in program.inputs]
    wanted = expected(given, one, least)
    kinds = {x.name: x.dtype for x in program.outputs}
    word, lengths = LENGTHS[name]
    for bits in lengths:
        got = run_emulated(machine(f"{name}:{word}={bits}"), path, inputs, kinds)
        for output, (exact, bound) in wanted.items():
            made = got[output].astype(np.float64)
            assert (abs(made - exact) <= bound).all(), (bits, output)
            assert not (abs(np.roll(made, 1, axis=-1) - exact) <= bound).all()


@pytest.mark.drawn
@pytest.mark.parametrize("name", ["riscv64+v", "aarch64+sve"])
@pytest.mark.parametrize("kind", KINDS)
def test_wider_vectors_execute_fewer_instructions(
    kind: str, name: str, tmp_path: Path, plugin: Path
) -> None:
    program, path, given = executable(LAYER, kind, name, tmp_path)
    files: list[Path] = []
    for x in program.inputs:
        files.append(tmp_path / f"{x.name}.npy")
        np.save(files[-1], given[x.name])
    word, lengths = LENGTHS[name]
    one, two, four = (
        of_one_run(plugin, machine(f"{name}:{word}={bits}"), path, files).all
        for bits in lengths[:3]
    )
    assert one >= 1.8 * two and one >= 3.2 * four
