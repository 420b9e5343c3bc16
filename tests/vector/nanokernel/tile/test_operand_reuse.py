"""Which tiles of a task read the same part of an operand."""

from __future__ import annotations

import pytest

from nanoloom.ir import mlir
from nanoloom.ir.mlir import ir, named
from nanoloom.vector.nanokernel.tile.operand_reuse import visit_of
from tests.filecheck import check_text

LOOPS = """
func.func @f(%source: tensor<64x96xf32>, %other: tensor<32x32xf32>) -> tensor<32x32xf32> {{
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c96 = arith.constant 96 : index
  %c128 = arith.constant 128 : index
  %made = scf.for %{outer} = %{begin} to %{outer_end} step %c32
      iter_args(%x = %other) -> (tensor<32x32xf32>) {{
    %inside = scf.for %{inner} = %c0 to %{inner_end} step %c32
        iter_args(%y = %x) -> (tensor<32x32xf32>) {{
      {part}
      %tile = linalg.generic {{
          indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>],
          iterator_types = ["parallel", "parallel"]}}
          ins(%part : tensor<32x32xf32>) outs(%y : tensor<32x32xf32>) {{
        ^bb0(%a: f32, %b: f32):
          linalg.yield %a : f32
      }} -> tensor<32x32xf32>
      scf.yield %tile : tensor<32x32xf32>
    }}
    scf.yield %inside : tensor<32x32xf32>
  }}
  return %made : tensor<32x32xf32>
}}
"""  # noqa: E501
ROWS, COLUMNS = ("row", "c128"), ("column", "c96")
SLICE = (
    "%part = tensor.extract_slice %source[0, {}] [32, 32] [1, 1] "
    ": tensor<64x96xf32> to tensor<32x32xf32>"
)


def visit(
    outer: tuple[str, str], inner: tuple[str, str], part: str, begin: str = "c0"
) -> tuple[str, int]:
    """The function with a use of the two numbers, and how many places there are."""
    text = LOOPS.format(
        outer=outer[0], outer_end=outer[1], inner=inner[0], inner_end=inner[1],
        part=part, begin=begin,
    )  # fmt: skip
    with mlir.context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        (op,) = named(module, "linalg.generic")
        with ir.InsertionPoint(op):
            found = visit_of(op, op.operation.operands[0])
            ir.Operation.create(
                "builtin.unrealized_conversion_cast",
                [ir.IndexType.get()],
                [found.again, found.place],
            )
        return str(module), found.places


def test_rows_come_back_to_all_columns() -> None:
    text, places = visit(ROWS, COLUMNS, SLICE.format("%column"))
    assert places == 3
    check_text(
        text,
        """
    CHECK: scf.for [[ROW:%[a-z0-9]+]] =
    CHECK: scf.for [[COLUMN:%[a-z0-9]+]] =
    CHECK: [[PLACE:%.*]] = arith.divui [[COLUMN]], %c32
    CHECK: builtin.unrealized_conversion_cast [[ROW]], [[PLACE]]
    """,
    )


def test_other_columns_take_the_same_place() -> None:
    """Where the loop over columns stands outside, nothing comes back to them."""
    text, places = visit(COLUMNS, ROWS, SLICE.format("%column"))
    assert places == 1
    check_text(
        text,
        """
    CHECK: scf.for [[COLUMN:%[a-z0-9]+]] =
    CHECK: scf.for [[ROW:%[a-z0-9]+]] =
    CHECK: builtin.unrealized_conversion_cast [[ROW]], {{%c0[_0-9]*}} :
    """,
    )


def test_all_tiles_read_the_same() -> None:
    text, places = visit(ROWS, COLUMNS, SLICE.format("0"))
    assert places == 1
    check_text(
        text,
        """
    CHECK: scf.for [[ROW:%[a-z0-9]+]] =
    CHECK: scf.for [[COLUMN:%[a-z0-9]+]] =
    CHECK: [[SUM:%.*]] = arith.addi [[ROW]], [[COLUMN]]
    CHECK: builtin.unrealized_conversion_cast [[SUM]], {{%.*}} :
    """,
    )


@pytest.mark.parametrize(
    "part",
    [
        # What the loops carry, by a slice of it or by a region that reads it.
        "%part = tensor.extract_slice %y[0, 0] [32, 32] [1, 1] "
        ": tensor<32x32xf32> to tensor<32x32xf32>",
        """%part = tensor.generate {
          ^bb0(%i: index, %j: index):
            %number = tensor.extract %y[%i, %j] : tensor<32x32xf32>
            tensor.yield %number : f32
          } : tensor<32x32xf32>""",
    ],
    ids=["slice", "region"],
)
def test_what_every_tile_makes_anew(part: str) -> None:
    text, places = visit(ROWS, COLUMNS, part)
    assert places == 1
    check_text(
        text,
        """
    CHECK: scf.for
    CHECK: scf.for
    CHECK: builtin.unrealized_conversion_cast {{%c0[_0-9]*}}, {{%c0[_0-9]*}} :
    """,
    )


def test_a_copy_that_no_loop_changes() -> None:
    """Made in the loops of what stands outside of them: all tiles read the same."""
    part = """%part = tensor.generate {
          ^bb0(%i: index, %j: index):
            %number = tensor.extract %other[%i, %j] : tensor<32x32xf32>
            tensor.yield %number : f32
          } : tensor<32x32xf32>"""
    text, _ = visit(ROWS, COLUMNS, part)
    assert "arith.addi" in text


def test_a_loop_that_does_not_begin_at_0() -> None:
    """Its first round is as good as any other: every tile is the first."""
    text, places = visit(ROWS, COLUMNS, SLICE.format("%column"), begin="c32")
    assert places == 1
    check_text(
        text,
        """
    CHECK: scf.for
    CHECK: scf.for
    CHECK: builtin.unrealized_conversion_cast {{%c0[_0-9]*}}, {{%c0[_0-9]*}} :
    """,
    )
