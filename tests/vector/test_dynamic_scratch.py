"""The room of temporaries that grow with a kernel's sizes."""

from __future__ import annotations

import pytest

from nanoloom.ir.mlir import context, ir, named
from nanoloom.vector.dynamic_scratch import place_sized, room_of, rooms_of

HEAD = """
func.func @kernel(%x: memref<?x5xf32>, %sizes: memref<2xi64>) attributes {
    nanoloom.extents = [array<i64: 1, -1>, array<i64: -1>], nanoloom.sizes = 1 : i64} {
  %c1 = arith.constant 1 : index
  %word = memref.load %sizes[%c1] : memref<2xi64>
  %n = arith.index_cast %word : i64 to index
"""
SUM = "%m = affine.apply affine_map<()[s0] -> (s0 * {} + {})>()[%n]"


def module(made: str, extent: str) -> ir.Module:
    kind = "memref<3x?x5xf32>"
    rest = f"%t = memref.alloc({extent}) : {kind}\n memref.dealloc %t : {kind}\n"
    return ir.Module.parse(f"{HEAD}{made}\n{rest}return }}")


@pytest.mark.parametrize(
    ("made", "extent", "bytes_"),
    [
        ("", "%n", 60), (SUM.format(2, 1), "%m", 180), (SUM.format(1, 6), "%m", 420),
        (SUM.format(2, -1), "%m", 120), (SUM.format(3, -2), "%m", 180),
    ],
)  # fmt: skip
def test_what_windows_read_of_a_row(made: str, extent: str, bytes_: int) -> None:
    """Room for 2 n + 1 columns is that of 3 n, for 2 n - 1 that of 2 n."""
    with context():
        parsed = module(made, extent)
        place_sized(parsed)
        (room,) = rooms_of(parsed.body.operations[0])
        assert (room.bytes, room.sizes) == (bytes_, (1,))
        assert not named(parsed, "memref.alloc")


@pytest.mark.parametrize("made", [SUM.format(-2, -1), SUM.format(-1, 9)])
def test_what_may_be_more_than_a_multiple(made: str) -> None:
    with context():
        parsed = module(made, "%m")
        (op,) = named(parsed, "memref.alloc")
        kind = ir.MemRefType(op.operation.results[0].type)
        function = parsed.body.operations[0].operation
        assert room_of(kind, list(op.operation.operands), function) is None


BRANCHED = """
  %yes = arith.constant true
  %big = affine.apply affine_map<()[s0] -> (s0 * 2)>()[%n]
  %one = memref.alloc({}) : memref<?xf32>
  %made = scf.if %yes -> (memref<?xf32, strided<[?], offset: ?>>) {{
    %other = memref.alloc({}) : memref<?xf32>
    %cast = memref.cast %other : memref<?xf32> to memref<?xf32, strided<[?], offset: ?>>
    scf.yield %cast : memref<?xf32, strided<[?], offset: ?>>
  }} else {{
    %cast = memref.cast %one : memref<?xf32> to memref<?xf32, strided<[?], offset: ?>>
    scf.yield %cast : memref<?xf32, strided<[?], offset: ?>>
  }}
  %m = memref.dim %made, %zero : memref<?xf32, strided<[?], offset: ?>>
"""


@pytest.mark.parametrize(
    ("one", "other", "bytes_"), [("%n", "%n", 60), ("%n", "%big", 120)]
)
def test_what_comes_out_of_a_branch(one: str, other: str, bytes_: int) -> None:
    """As much as the larger one of what both branches give."""
    with context():
        zero = "%zero = arith.constant 0 : index\n"
        parsed = module(zero + BRANCHED.format(one, other), "%m")
        op = named(parsed, "memref.alloc")[-1]
        kind = ir.MemRefType(op.operation.results[0].type)
        function = parsed.body.operations[0].operation
        room = room_of(kind, list(op.operation.operands), function)
        assert room is not None
        assert (room.bytes, room.sizes) == (bytes_, (1,))


def test_rows_joined_with_columns() -> None:
    """Room for all of ? x 5 numbers is that of 5 n."""
    with context():
        made = """
          %zero = arith.constant 0 : index
          %flat = memref.collapse_shape %x [[0, 1]] : memref<?x5xf32> into memref<?xf32>
          %m = memref.dim %flat, %zero : memref<?xf32>"""
        parsed = module(made, "%m")
        (op,) = named(parsed, "memref.alloc")
        kind = ir.MemRefType(op.operation.results[0].type)
        function = parsed.body.operations[0].operation
        room = room_of(kind, list(op.operation.operands), function)
        assert room is not None
        assert (room.bytes, room.sizes) == (60 * 5, (1,))
