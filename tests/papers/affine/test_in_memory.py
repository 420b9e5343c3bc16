"""Sums in memory, and in registers: what is left of them in RISC-V's assembly."""

from __future__ import annotations

import re

import numpy as np
import pytest
from onnx import numpy_helper, parser

from nanoloom.compile_program import compile
from nanoloom.emit import emit_stage
from nanoloom.frontend.onnx import load
from nanoloom.ir.mlir import context, ir, named
from nanoloom.options import CompileOptions
from nanoloom.target import by_name
from nanoloom.target.host import host
from nanoloom_papers.affine.carrier import FOR
from nanoloom_papers.affine.in_memory import between_load_and_store, read_again
from nanoloom_papers.affine.strategies import StrategyName, strategy_named
from tests.papers.affine.loops import carrying

PRODUCT = """<ir_version: 10, opset_import: ["": 21]>
k (float[8, {0}] a) => (float[8, {1}] y) <float[{0}, {1}] b> {{ y = MatMul(a, b) }}"""


def model(terms: int, columns: int) -> tuple[bytes, np.ndarray]:
    made = parser.parse_model(PRODUCT.format(terms, columns))
    right = np.random.default_rng(0).standard_normal((terms, columns))
    held = numpy_helper.from_array(right.astype(np.float32), "b")
    made.graph.initializer.append(held)
    return made.SerializeToString(), right.astype(np.float32)


def hot_loop(strategy: StrategyName) -> list[str]:
    """Instructions of the loop with most multiply-adds, of 8 x 384 times 384 x 64."""
    texts: list[str] = []
    options = CompileOptions(
        by_name("rv64gcv-zvl512b"), strategy=strategy_named(strategy)
    )
    given = load(model(384, 64)[0])
    emit_stage(given, "asm", options, lambda *words: texts.append(words[-1]))
    found: list[list[str]] = [[]]
    for line in map(str.strip, texts[0].splitlines()):
        if re.match(r"\.?\w+:$", line):
            found.append([])
        elif line and line[0] not in ".#":
            found[-1].append(line.split()[0])
        if re.match(r"b\w+\s", line):
            found.append([])
    return max(found, key=lambda loop: sum(op.startswith("vfm") for op in loop))


def test_onnx_mlir_loads_and_stores_in_its_loop() -> None:
    """Eight steps of four rows: LLVM does not keep the sums in registers beyond."""
    loop = hot_loop("onnx-mlir")
    assert loop.count("vse32.v") == 4 and loop.count("flw") == 32
    assert loop.count("vle32.v") == 8 + 4  # rows of the right operand, and sums


def test_sums_in_registers_store_nothing_and_share_what_they_load() -> None:
    loop = hot_loop("affine")
    assert "vse32.v" not in loop and not any(op[0] == "f" for op in loop)
    assert loop.count("vle32.v") == 4 and loop.count("vfmacc.vv") == 4
    assert not any(op.startswith(("vl4r", "vs4r", "vmv4r")) for op in loop)  # no spills


@pytest.mark.parametrize(("terms", "columns"), [(5, 21), (8, 16), (27, 33)])
def test_numbers(terms: int, columns: int) -> None:
    """Steps left over of eight, columns left over of vectors: against float64."""
    file, right = model(terms, columns)
    left = np.random.default_rng(1).standard_normal((8, terms)).astype(np.float32)
    options = CompileOptions(host(), strategy=strategy_named("onnx-mlir"))
    got = compile(file, threads=1, options=options)({"a": left})["y"]
    exact = left.astype(np.float64) @ right.astype(np.float64)
    room = (terms + 2) * np.finfo(np.float32).eps * (abs(left) @ abs(right))
    assert (abs(got - exact) <= room).all()
    assert (abs(got - 2 * exact) > room).any()


def test_what_a_loop_carries_stays() -> None:
    """Nothing is loaded and stored there: nothing to do, and nothing to read again."""
    with context():
        module = ir.Module.parse(carrying("%n = arith.addf %m, %x : f32"))
        before = str(module)
        *_, loop = named(module, FOR)
        between_load_and_store(loop.operation, 8)
        read_again(module)
        assert str(module) == before
