"""The first lanes of a vector are written by whole stores of fewer."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import onnx
import pytest

import nanoloom
from nanoloom.ir import mlir
from nanoloom.ir.mlir import ir
from nanoloom.target import Target, by_name
from nanoloom.vector.stores_in_parts import store_in_parts
from tests.filecheck import check_text
from tests.linalg.bounds import sample
from tests.vector.kernel_harness import program_of, run, stage_text, targets

NARROW = by_name("x86-64-v3")
STORE = r"vector\.store .*vector<(\d+)xf32>|memref\.store"


def doubled(b: Any, x: Any) -> Any:
    return b.elementwise(lambda s: s + s, x)


@pytest.mark.parametrize(("rest", "parts"), [(3, [2, 1]), (6, [4, 2]), (7, [4, 2, 1])])
def test_known_lanes_are_a_store_for_each_power_of_two(
    rest: int, parts: list[int]
) -> None:
    program = program_of(doubled, ((16 + rest,), "float32"))
    text = stage_text(program, "vector", NARROW)
    assert "maskedload" in text and "maskedstore" not in text
    made = [int(found or 1) for found in re.findall(STORE, text)]
    assert made[-len(parts) :] == parts


@pytest.mark.parametrize("name", ["skylake-avx512", "neoverse-v1", "x86-64-v2"])
def test_other_targets_keep_what_they_have(name: str) -> None:
    with mlir.context():
        module = ir.Module.parse(COUNTED)
        before = str(module)
        store_in_parts(module, by_name(name))
        assert str(module) == before


COUNTED = """
func.func @kernel(%x: memref<8xf32>, %v: vector<8xf32>, %n: index) {
  %at = arith.constant 0 : index
  %mask = vector.create_mask %n : vector<8xi1>
  vector.maskedstore %x[%at], %mask, %v : memref<8xf32>, vector<8xi1>, vector<8xf32>
  return
}
"""


def test_lanes_that_a_run_counts_are_asked_for_bit_by_bit() -> None:
    with mlir.context():
        module = ir.Module.parse(COUNTED)
        store_in_parts(module, NARROW)
        assert module.operation.verify()
        check_text(
            str(module),
            """
        CHECK-NOT: maskedstore
        CHECK: arith.cmpi sge, %arg2, %c8
        CHECK: vector.store %arg1, {{.*}} vector<8xf32>
        CHECK: else
        CHECK: arith.maxsi %arg2, %c0
        CHECK: vector.store {{.*}} vector<4xf32>
        CHECK: vector.store {{.*}} vector<2xf32>
        CHECK: memref.store
        CHECK-NOT: vector.store
        """,
        )


@pytest.mark.parametrize("target", targets(), ids=str)
@pytest.mark.parametrize("kind", ["float32", "float64", "int64"])
def test_no_lane_beside_them_is_written(kind: str, target: Target) -> None:
    """Between pages that cannot be touched."""
    for rest in range(1, 9):
        x = sample(rest, (3, 8 + rest), kind)
        got = run(doubled, x, target=target)
        assert (got == x + x).all() and not (got == np.roll(x, 1) * 2).all()


OPEN = """<ir_version: 10, opset_import: ["" : 20]>
g (float[3, n] x, float[3, 1] z) => (float[3, n] y) { y = Mul(x, z) }"""


def test_no_lane_beside_open_sizes_is_written() -> None:
    """A row's first lanes do not lie over those behind them."""
    model = onnx.parser.parse_model(OPEN)
    program = nanoloom.compile(model, threads=1)
    z = sample(1, (3, 1), "float32")
    for n in range(1, 19):
        x = sample(n, (3, n), "float32")
        assert (program({"x": x, "z": z})["y"] == x * z).all()
    assert not program.open.reason
