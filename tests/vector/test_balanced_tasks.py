"""Tasks of an extent that is known at run time are as alike as can be."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest

import nanoloom
from nanoloom.cache import Cache
from nanoloom.ir.mlir import context, ir, run_pipeline
from nanoloom.vector.balanced_tasks import balance_tasks
from tests.filecheck import check_text

A = "memref<?x?xf32>"
VIEW = (
    f"%v = memref.subview %a[%i, 0] [%c, %n] [1, 1] : {A} to "
    "memref<?x?xf32, strided<[?, 1], offset: ?>> "
    'linalg.fill ins(%x : f32) outs(%v : memref<?x?xf32, strided<[?, 1], offset: ?>>)'
)  # fmt: skip
COLUMNS = VIEW.replace("[%i, 0] [%c, %n]", "[0, %i] [%n, %c]")


@pytest.fixture(autouse=True)
def _mlir() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction] - a fixture for all
    with context():
        yield


def balanced(*lines: str) -> str:
    """The text of a loop over tasks of 48 points, of %n, with some lines in it."""
    body = "\n".join(lines)
    text = f"""
    #count = affine_map<(d0)[s0] -> (-d0 + s0, 48)>
    func.func @kernel(%a: {A}, %n: index, %x: f32) {{
      scf.forall (%i) = (0) to (%n) step (48) {{
        %c = affine.min #count(%i)[%n]
        {body}
      }}
      return
    }}"""
    module = ir.Module.parse(text)
    balance_tasks(module)
    assert module.operation.verify()
    run_pipeline(module, ("canonicalize", "cse"))
    return str(module)


def test_the_first_tasks_have_a_row_more() -> None:
    check_text(
        balanced(VIEW),
        """
    CHECK: [[TASKS:%.*]] = arith.maxui
    CHECK: [[LEAST:%.*]] = arith.divui %arg1, [[TASKS]]
    CHECK: [[MORE:%.*]] = arith.remui %arg1, [[TASKS]]
    CHECK: scf.forall ([[PLACE:%.*]]) = (0) to (%arg1) step (48)
    CHECK: [[TASK:%.*]] = arith.divui [[PLACE]], %c48
    CHECK: [[BEFORE:%.*]] = arith.muli [[TASK]], [[LEAST]]
    CHECK: [[EXTRA:%.*]] = arith.minui [[TASK]], [[MORE]]
    CHECK: [[BEGIN:%.*]] = arith.addi [[BEFORE]], [[EXTRA]]
    CHECK: [[ROWS:%.*]] = affine.min
    CHECK: memref.subview {{.*}}[[[BEGIN]], 0] [[[ROWS]], %arg1]
    """,
    )


def test_whole_lines_of_columns_stay_together() -> None:
    """A task does not begin within a line of the cache: 48 are three times 16."""
    text = balanced(COLUMNS)
    check_text(
        text,
        """
    CHECK: arith.ceildivui %arg1, %c16
    CHECK: [[BEGIN:%.*]] = arith.muli {{.*}}, %c16
    CHECK: [[LEFT:%.*]] = arith.subi %arg1, [[BEGIN]]
    CHECK: memref.subview {{.*}}[0, [[BEGIN]]]
    """,
    )


@pytest.mark.parametrize(
    "line",
    [
        "%e = arith.addi %i, %c : index %l = arith.cmpi ult, %e, %n : index "
        f"scf.if %l {{ memref.store %x, %a[%c, %c] : {A} }}",
        f"scf.for %j = %i to %n step %c {{ memref.store %x, %a[%j, %j] : {A} }}",
        f"memref.store %x, %a[%c, %i] : {A} %m = arith.subi %n, %i : index "
        "%k = vector.create_mask %m : vector<16xi1> %z = vector.broadcast %x : f32 to "
        f"vector<16xf32> vector.maskedstore %a[%c, %c], %k, %z : {A}, vector<16xi1>, "
        "vector<16xf32>",
    ],
    ids=["compared", "end of a loop", "mask"],
)
def test_a_place_that_tells_more_than_where_stays(line: str) -> None:
    """It may say where the task's step ends, which would be another one."""
    assert "arith.divui" not in balanced(VIEW, line)


def test_draws_are_right_at_any_number_of_threads(tmp_path: Path) -> None:
    """Products and sums of rows, of drawn widths and lengths, against float64; and bit
    for bit what one thread makes."""
    random = np.random.default_rng(11)
    for _ in range(3):
        depth, columns = (int(n) for n in random.integers(8, 400, 2))
        model = onnx.parser.parse_model(f"""
        <ir_version: 10, opset_import: ["" : 20]>
        net (float[rows, {depth}] x) => (float[rows, {columns}] y, float[rows, 1] z)
        {{ y = MatMul(x, w)
           q = Mul(x, x)
           axes = Constant <value = int64[1] {{1}}> ()
           z = ReduceSum <keepdims = 1> (q, axes) }}""")
        weight = random.standard_normal((depth, columns), np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
        programs = [
            nanoloom.compile(model, threads=threads, cache=Cache(tmp_path))
            for threads in (1, 2, 3)
        ]
        for rows in (1, *(int(n) for n in random.integers(2, 900, 6)), 128, 129):
            x = random.standard_normal((rows, depth), np.float32)
            first, *others = (program({"x": x}) for program in programs)
            wide, size = x.astype(np.float64), np.abs(x).astype(np.float64)
            bound = (depth + 1) * 2.0**-24
            y, z = wide @ weight, (wide**2).sum(axis=1, keepdims=True)
            assert (np.abs(first["y"] - y) <= bound * (size @ np.abs(weight))).all()
            assert (np.abs(first["z"] - z) <= 2 * bound * z).all()
            for other in others:
                np.testing.assert_array_equal(other["y"], first["y"])
                np.testing.assert_array_equal(other["z"], first["z"])
        assert not programs[0].open.reason
