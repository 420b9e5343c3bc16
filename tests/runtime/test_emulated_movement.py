"""What is moved in vectors of any width under qemu: one file, right at every length."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import parser
from onnx.reference import ReferenceEvaluator

from nanoloom.cache import Cache
from nanoloom.compile_program import compile
from nanoloom.options import CompileOptions
from nanoloom.runtime.emulation import machine, run_emulated
from nanoloom_papers.reproduce.instruction_counts import of_one_run
from tests.c_libraries import lend

# Sizes that no vector divides, some shorter than a vector or a piece; wide numbers;
# places of rows, of single numbers, behind the last from the end; steps.
MODEL = """<ir_version: 10, opset_import: ["": 21]>
moved (float[83, 133] t, double[19, 37] d, float[1, 33, 3, 17] k, float[5, 1, 41] o,
       int64[1, 31] rows, int32[7, 5] places, float[1, 31, 133] add)
 => (float[133, 83] a, double[37, 19] b, float[1, 3, 17, 33] c, float[41, 5, 1] e,
     float[1, 31, 133] f, float[83, 7, 5] g, float[83, 44] h, float[1, 31, 133] j)
{
    n = Transpose<perm = [1, 0]>(t)
    a = Mul(n, n)
    b = Transpose<perm = [1, 0]>(d)
    c = Transpose<perm = [0, 2, 3, 1]>(k)
    e = Transpose<perm = [2, 0, 1]>(o)
    f = Gather(t, rows)
    g = Gather<axis = 1>(t, places)
    one = Constant<value_ints = [1]>()
    end = Constant<value_ints = [133]>()
    step = Constant<value_ints = [3]>()
    h = Slice(t, one, end, one, step)
    s = Add(f, add)
    j = Relu(s)
}
"""
TURNED = """<ir_version: 10, opset_import: ["": 21]>
turned (float[60, 7, 65] x) => (float[7, 65, 60] y)
{ y = Transpose<perm = [1, 2, 0]>(x) }
"""
LOOKED_UP = """<ir_version: 10, opset_import: ["": 21]>
rows (float[40, 200] x, int64[65] at) => (float[65, 200] y) { y = Gather(x, at) }
"""
LENGTHS = {
    "riscv64+v": ("vlen", (128, 256, 512, 1024)),
    "aarch64+sve": ("sve", (128, 256, 512, 2048)),
}


def inputs_of(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    """Seeded numbers; places from both ends of the shortest axis that is looked up."""
    random, made = np.random.default_rng(6), dict[str, np.ndarray]()
    for x in model.graph.input:
        kind = onnx.helper.tensor_dtype_to_np_dtype(x.type.tensor_type.elem_type)
        shape = [d.dim_value for d in x.type.tensor_type.shape.dim]
        places = random.integers(-40, 40, shape)
        numbers = places if kind.kind == "i" else random.standard_normal(shape)
        made[x.name] = numbers.astype(kind)
    return made


def executable(model: onnx.ModelProto, name: str, folder: Path) -> Path:
    cache, target = Cache(folder / "cache"), machine(name).target
    lend(target.arch, cache)
    program = compile(model, options=CompileOptions(target), cache=cache)
    return program.save(folder / "moved", form="executable")


@pytest.mark.parametrize("name", LENGTHS)
def test_one_file_at_every_length(name: str, tmp_path: Path) -> None:
    """Nothing is computed but a product, a sum and a maximum, each rounded once."""
    model = parser.parse_model(MODEL)
    given = inputs_of(model)
    wanted = ReferenceEvaluator(model).run(None, given)
    outputs = {
        x.name: array for x, array in zip(model.graph.output, wanted, strict=True)
    }
    path = executable(model, name, tmp_path)
    kinds = {name: array.dtype for name, array in outputs.items()}
    word, lengths = LENGTHS[name]
    for bits in lengths:
        where = machine(f"{name}:{word}={bits}")
        got = run_emulated(where, path, list(given.values()), kinds)
        for output, want in outputs.items():
            assert (got[output] == want).all(), (bits, output)
            assert not (np.roll(got[output], 1) == want).all()


@pytest.mark.drawn
@pytest.mark.parametrize("name", LENGTHS)
@pytest.mark.parametrize("text", [TURNED, LOOKED_UP], ids=["turned", "looked up"])
def test_wider_vectors_execute_fewer_instructions(
    text: str, name: str, tmp_path: Path, plugin: Path
) -> None:
    """Not as many times fewer: rows end in parts of vectors, and begin each time."""
    model = parser.parse_model(text)
    path = executable(model, name, tmp_path)
    files: list[Path] = []
    for x, array in inputs_of(model).items():
        np.save(tmp_path / f"{x}.npy", array)
        files.append(tmp_path / f"{x}.npy")
    word, lengths = LENGTHS[name]
    counts = [
        of_one_run(plugin, machine(f"{name}:{word}={bits}"), path, files, 8).all
        for bits in lengths[:3]
    ]
    assert counts[0] >= 1.3 * counts[1] >= 1.3 * 1.15 * counts[2]
