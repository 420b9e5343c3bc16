"""Operations found by name, in the order of the text."""

from __future__ import annotations

import pytest

from nanoloom.ir import mlir
from nanoloom.ir.mlir import ir

NESTED = """
func.func @f(%n: index, %m: memref<4xf32>) {
  %a = arith.constant 1 : index
  scf.for %i = %n to %n step %a {
    %b = arith.constant 2 : index
    scf.for %j = %n to %n step %b {
      %c = arith.constant 3 : index
      memref.dealloc %m : memref<4xf32>
    }
    scf.for %k = %n to %n step %b {
    }
  }
  %d = arith.constant 4 : index
  scf.for %l = %n to %d step %a {
  }
  return
}
"""


@pytest.mark.parametrize(
    ("names", "count"),
    [
        (("arith.constant", "scf.for"), 8),
        (("scf.for",), 4),
        (("func.func", "memref.dealloc"), 2),
        (("memref.alloc",), 0),
    ],
)
def test_parents_come_before_children(names: tuple[str, ...], count: int) -> None:
    with mlir.context():
        module = ir.Module.parse(NESTED)
        every = mlir.operations(module, lambda op: op.operation.name in names)
        found = mlir.named(module, *names)
        assert [op.operation for op in found] == [op.operation for op in every]
        assert len(found) == count and {type(x) for x in found} == set(map(type, every))


def test_what_is_asked_is_found_first() -> None:
    with mlir.context():
        module = ir.Module.parse(NESTED)
        (outer, *inner) = mlir.named(module, "scf.for")[:2]
        assert mlir.named(outer, "scf.for")[:2] == [outer, *inner]
