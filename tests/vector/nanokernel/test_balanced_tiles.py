"""Tiles of a number of rows known at run time are as alike as can be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import nanoloom
from nanoloom.cache import Cache
from nanoloom.options import CompileOptions
from nanoloom.target import by_name
from nanoloom.target.host import host
from tests.filecheck import check_text
from tests.vector.nanokernel.test_partial_tiles import product, vectorized

DEPTH, COLUMNS = 37, 203
MODEL = f"""
<ir_version: 10, opset_import: ["" : 20]>
layer (float[rows, {DEPTH}] x) => (float[rows, {COLUMNS}] y)
{{
    m = MatMul(x, w)
    y = Relu(m)
}}
"""


def test_a_tile_begins_behind_the_rows_of_those_before(tmp_path: Path) -> None:
    """A task's rows are divided by its tiles; the first ones have what is left over."""
    options = CompileOptions(by_name("x86-64-v4"))
    _, text = vectorized(product(options, Cache(tmp_path), 300), options)
    check_text(
        text,
        """
    CHECK: scf.for
    CHECK: [[N:%.*]] = affine.min
    CHECK: [[TILES:%.*]] = arith.maxui
    CHECK: [[LEAST:%.*]] = arith.divui [[N]], [[TILES]]
    CHECK: [[MORE:%.*]] = arith.remui [[N]], [[TILES]]
    CHECK: scf.for [[ROW:%.*]] = %c0{{.*}} to [[N]] step %c6
    CHECK: [[PLACE:%.*]] = arith.divui [[ROW]], %c6
    CHECK: [[ALL:%.*]] = arith.muli [[PLACE]], [[LEAST]]
    CHECK: [[EXTRA:%.*]] = arith.minui [[PLACE]], [[MORE]]
    CHECK: [[BEGIN:%.*]] = arith.addi [[ALL]], [[EXTRA]]
    CHECK: [[ROWS:%.*]] = affine.min
    CHECK: [[HERE:%.*]] = affine.apply {{.*}}[[BEGIN]]
    CHECK: memref.subview {{.*}}[[[HERE]], 0] [[[ROWS]], 37]
    """,
    )


def test_a_version_of_all_its_rows_has_no_pointer_a_row(tmp_path: Path) -> None:
    """Six of six rows lie at known distances, the last of three or four does not."""
    options = CompileOptions(by_name("x86-64-v4"))
    _, text = vectorized(product(options, Cache(tmp_path), 300), options)
    check_text(
        text,
        """
    CHECK: arith.cmpi ugt, [[ROWS:%.*]], %c5
    CHECK-NOT: arith.subi [[ROWS]]
    CHECK: arith.cmpi ugt, [[ROWS]], %c4
    CHECK-NOT: arith.subi [[ROWS]]
    CHECK: arith.cmpi ugt, [[ROWS]], %c2
    CHECK: [[LAST:%.*]] = arith.subi [[ROWS]], %c1
    CHECK-NEXT: arith.minui [[LAST]], %c3
    """,
    )


@pytest.mark.drawn(one_in=2)
@pytest.mark.parametrize("target", ["x86-64-v2", "x86-64-v3", ""])
def test_any_number_of_rows_is_right(target: str, tmp_path: Path) -> None:
    """Against float64, within the bound of sums of so many products."""
    random = np.random.default_rng(0)
    weight = random.standard_normal((DEPTH, COLUMNS), np.float32)
    model = onnx.parser.parse_model(MODEL)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    options = CompileOptions(by_name(target) if target else host())
    program, alone = (
        nanoloom.compile(model, options=options, threads=threads, cache=Cache(tmp_path))
        for threads in (2, 1)
    )
    for rows in (*range(1, 45), 97, 128, 447):
        x = random.standard_normal((rows, DEPTH), np.float32)
        y = program({"x": x})["y"]
        exact = np.maximum(x.astype(np.float64) @ weight, 0)
        size = np.abs(x).astype(np.float64) @ np.abs(weight)
        assert (np.abs(y - exact) <= (DEPTH + 1) * 2.0**-24 * size).all(), rows
        np.testing.assert_array_equal(y, alone({"x": x})["y"])
    assert not program.open.reason
