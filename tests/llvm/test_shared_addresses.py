"""What a loop's addresses share is computed in front of it, hidden from LLVM."""

from __future__ import annotations

import pytest

from nanoloom.ir.mlir import context, ir
from nanoloom.llvm.shared_addresses import share_addresses
from tests.filecheck import check_text

LOOP = """
func.func @k(%a: memref<9x7x64xf32>, %to: memref<8xf32>, %i: index, %j: index) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  %v = arith.constant dense<0.0> : vector<8xf32>
  %next = arith.addi %i, %c1 : index
  scf.for %k = %c0 to %c64 step %c2 {{
    %sum = vector.fma %v, %v, %v : vector<8xf32>
    {ahead}
    %more = arith.addi %k, %c1 : index
    %x = memref.load %a[%i, %j, %k] : memref<9x7x64xf32>
    %y = memref.load %a[%next, %j, %more] : memref<9x7x64xf32>
    %z = {access}
    %w = memref.load %a[%c2, %c1, %k] : memref<9x7x64xf32>
    %s = arith.addf %x, %y : f32
    memref.store %s, %to[%k] : memref<8xf32>
  }}
  return
}}
"""
PLAIN = "memref.load %a[%j, %i, %k] : memref<9x7x64xf32>"
READ = (
    "vector.transfer_read %a[%j, %i, %k], %zero {in_bounds = [IN]} : "
    "memref<9x7x64xf32>, vector<8xf32>"
)


AHEAD = "memref.prefetch %a[%i, %j, %k], read, locality<2>, data : memref<9x7x64xf32>"


def shared(access: str, ahead: str = AHEAD) -> str:
    with context():
        module = ir.Module.parse(LOOP.format(access=access, ahead=ahead))
        share_addresses(module)
        assert module.operation.verify()
        return str(module)


def test_terms_become_one_number() -> None:
    """Two loads share a view: their rows differ in a number alone."""
    check_text(
        shared(PLAIN),
        """
        CHECK: inline_asm "", "=r,0"
        CHECK: %[[ONE:.*]] = memref.reinterpret_cast %{{.*}} to offset: [%{{.*}}]
        CHECK: inline_asm "", "=r,0"
        CHECK: %[[OTHER:.*]] = memref.reinterpret_cast %{{.*}} to offset: [%{{.*}}]
        CHECK: scf.for
        CHECK: memref.load %[[ONE]][%c0{{.*}}, %c0{{.*}}, %{{.*}}]
        CHECK: memref.load %[[ONE]][%c1{{.*}}, %c0{{.*}}, %{{.*}}]
        CHECK: memref.load %[[OTHER]][%c0{{.*}}, %c0{{.*}}, %{{.*}}]
        CHECK: memref.load %arg0[%c2{{.*}}, %c1{{.*}}, %{{.*}}]
        """,
    )


@pytest.mark.parametrize(("inside", "views"), [("true", 2), ("false", 1)])
def test_lanes_behind_an_end_are_found_by_the_index(inside: str, views: int) -> None:
    text = shared(READ.replace("IN", inside))
    assert text.count("= memref.reinterpret_cast") == views


def test_few_terms_are_left_alone() -> None:
    """LLVM tells those apart as well, and soon: the rows, the column, the next row."""
    assert "reinterpret_cast" not in shared(PLAIN, "")
