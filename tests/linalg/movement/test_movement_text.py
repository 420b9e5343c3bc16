"""What data movement looks like in the IR: no detours, rows read contiguously."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import onnx_ir

from nanoloom.graph.stage import optimize
from nanoloom.ir import mlir
from nanoloom.linalg.operators import OPERATORS
from nanoloom.linalg.stage import lower
from tests.linalg.single import model_of


def text_of(
    op: str, inputs: list[np.ndarray], constants: Any = (), **attributes: Any
) -> str:
    model, _ = model_of(op, inputs, attributes, constants=constants)
    graph = optimize(onnx_ir.from_proto(model), OPERATORS.keys())
    with mlir.context():
        return str(lower(graph).module)


def operations(text: str) -> list[str]:
    """The names of all operations, but for functions and what is free."""
    free = (
        "func.",
        "nanoloom.",
        "bufferization.",
        "arith.constant",
        "tensor.empty",
        "linalg.yield",
        "scf.yield",
    )
    names = re.findall(r"(?:^|= |\s)([a-z]+\.[a-z_]+)", text)
    return [n for n in names if not n.startswith(free)]


def test_a_reshape_is_one_view() -> None:
    x = np.zeros((1, 128, 768), np.float32)
    target = np.array([1, 128, 12, 64], np.int64)
    assert operations(text_of("Reshape", [x, target], [1])) == ["tensor.expand_shape"]
    target = np.array([128, 768], np.int64)
    assert operations(text_of("Reshape", [x, target], [1])) == ["tensor.collapse_shape"]


def test_a_slice_is_a_view() -> None:
    x = np.zeros((5, 7), np.float32)
    arrays = [np.array(v, np.int64) for v in ([1], [4], [0], [2])]
    text = text_of("Slice", [x, *arrays], [1, 2, 3, 4])
    assert operations(text) == ["tensor.extract_slice"]
    assert "[1, 0] [2, 7] [2, 1]" in text


def test_gathered_rows_are_read_in_the_innermost_loop() -> None:
    table, where = np.zeros((11, 5), np.float32), np.zeros((2, 3), np.int64)
    text = text_of("Gather", [table, where])
    assert 'iterator_types = ["parallel", "parallel", "parallel"]' in text
    maps = re.findall(r"affine_map<\(d0, d1, d2\) -> \((.*?)\)>", text)
    assert maps == ["d0, d1", "d0, d1, d2"]
    column = re.search(r"(%\d+) = linalg.index 2", text)
    assert column is not None
    assert "tensor.extract" in text


def test_a_gather_of_known_even_rows_is_a_view() -> None:
    table, where = np.zeros((11, 5), np.float32), np.array([2, 4, 6], np.int64)
    assert operations(text_of("Gather", [table, where], [1])) == [
        "tensor.extract_slice"
    ]


def test_nearest_upsampling_by_whole_factors_reads_no_table() -> None:
    x, factors = np.zeros((1, 3, 4, 5), np.float32), np.array([1, 1, 2, 2], np.float32)
    text = text_of(
        "Resize", [x, np.zeros(0, np.float32), factors], [1, 2], mode="nearest"
    )
    assert "tensor.extract" not in text


def test_rows_behind_gathered_places_are_whole() -> None:
    """Rows of 2 numbers were copied by themselves: fourteen times as long."""
    x, places = np.zeros((3, 40, 2), np.float16), np.zeros((7, 1), np.int64)
    for op in ("Gather", "GatherND"):
        text = text_of(op, [x, places])
        (loops,) = re.findall(r"iterator_types = \[([^]]*)\]", text)[-1:]
        assert loops.count("parallel") == (3 if op == "Gather" else 2)
        assert "tensor<3x80xf16>" in text
