"""What a program says of its memory, beside what the system says."""

from __future__ import annotations

import gc
import mmap
import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx.parser import parse_model

import nanoloom
from nanoloom.runtime.memory_use import MemoryUse, memory_use, resident

N = 700
WEIGHTS = np.random.default_rng(0).standard_normal((2, N, N)).astype(np.float32)


def model() -> bytes:
    text = f"""
    <ir_version: 10, opset_import: ["": 21]>
    g (float[n, {N}] x) => (float[n, {N}] y)
    {{ a = MatMul(x, v)  b = Softmax(a)  y = MatMul(b, w) }}"""
    made = parse_model(text)
    for name, values in zip("vw", WEIGHTS, strict=True):
        made.graph.initializer.append(onnx.numpy_helper.from_array(values, name))
    return made.SerializeToString()


@pytest.mark.parametrize("kind", ["compiled", "saved"])
def test_a_program_counts_its_memory(tmp_path: Path, kind: str) -> None:
    program = nanoloom.compile(model(), threads=2, cache=tmp_path / "cache")
    if kind == "saved":
        program = nanoloom.load(program.save(tmp_path / "model.so"), threads=2)
    else:
        assert program.memory == MemoryUse(0, 0, 0, 0, 0)
    x = np.ones((301, N), np.float32)
    program({"x": x})
    used = program.memory
    assert program.threads == 2
    assert WEIGHTS.nbytes <= used.weights <= 1.5 * WEIGHTS.nbytes
    assert used.arena >= x.nbytes and used.scratch > 0 and used.code > 1000
    assert used.mapped == used.weights + used.code + used.arena + used.scratch
    if used.resident is not None:  # a page more at either end of each piece
        held = WEIGHTS.nbytes + x.nbytes  # a run has written and read so much
        assert held <= used.resident <= used.mapped + (8 << 20)
    text = rf"<nanoloom\.MemoryUse: mapped {used.mapped / 1e6:.1f} MB \(weights "
    assert re.match(text, repr(used)) and "arena" in str(used)


def test_programs_that_share_weights_count_them_once(tmp_path: Path) -> None:
    program = nanoloom.compile(model(), threads=1, cache=tmp_path)
    again = nanoloom.compile(model(), threads=1, cache=tmp_path)
    for rows, each in ((2, program), (3, program), (2, again)):
        each({"x": np.ones((rows, N), np.float32)})
    loaded = [*program._loaded(), *again._loaded()]
    together = memory_use(x.instance for x in loaded)
    assert together.weights == program.memory.weights == again.memory.weights
    assert together.arena == program.memory.arena + again.memory.arena
    del program, again, loaded, each
    gc.collect()


def test_pages_that_are_there() -> None:
    """Of memory that nobody has touched none is; a range of nothing has none."""
    room = np.frombuffer(mmap.mmap(-1, 1 << 22), np.uint8)  # np.empty reuses some
    assert resident([]) in (0, None)
    before = resident([(room.ctypes.data, room.nbytes)])
    room[: 1 << 21] = 1
    after = resident([(room.ctypes.data, room.nbytes)])
    assert before is None or (before < after and after >= 1 << 21)
