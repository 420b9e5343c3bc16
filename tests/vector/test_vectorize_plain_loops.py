"""Bodies of a model's own loops have vectors where their width is any."""

from __future__ import annotations

import pytest

from nanoloom.ir.mlir import context, ir, named
from nanoloom.schedule.language import VectorizeRest
from nanoloom.vector.vectorize_plain_loops import vectorize_plain_loops

COLUMN = "memref<70xf32, strided<[31], offset: ?>>"
TOTALS = f"""
func.func @kernel(%x: {COLUMN}, %total: memref<70xf32>, %y: {COLUMN}) {{
  linalg.generic {{
    indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>,
                     affine_map<(d0) -> (d0)>],
    iterator_types = ["parallel"]}}
    ins(%x, %total : {COLUMN}, memref<70xf32>) outs(%y : {COLUMN}) {{
  ^bb0(%one: f32, %before: f32, %out: f32):
    %after = arith.addf %before, %one : f32
    linalg.yield %after : f32
  }}
  return
}}"""


@pytest.mark.parametrize("scalable", [True, False])
def test_running_sums_along_rows_are_of_many_rows(scalable: bool) -> None:
    """LLVM makes those of a known width."""
    with context(), ir.Location.unknown():
        module = ir.Module.parse(TOTALS)
        vectorize_plain_loops(module, VectorizeRest(128, scalable))
        (op,) = named(module, "linalg.generic")
        assert ("nanoloom." in str(op)) == scalable
