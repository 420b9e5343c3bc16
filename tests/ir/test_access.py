"""How operands are read along a dimension, and index arithmetic."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nanoloom.ir.access import (
    Access,
    Operand,
    add,
    apply,
    coefficient,
    constant_of,
    index,
    multiply,
)
from nanoloom.ir.linalg_query import maps
from nanoloom.ir.mlir import arith, context, ir, named, run_pipeline


@pytest.fixture(autouse=True)
def _mlir() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    with context():
        yield


def expression(text: str) -> ir.AffineExpr:
    attribute = ir.Attribute.parse(f"affine_map<(d0, d1) -> ({text})>")
    return ir.AffineMapAttr(attribute).value.results[0]


def operand(buffer: str, indexing: str) -> tuple[ir.Module, Operand]:
    """An operand of a generic that reads a buffer of this type through this map."""
    module = ir.Module.parse(f"""
      func.func @f(%a: {buffer}, %b: memref<4x8xf32>) {{
        linalg.generic {{indexing_maps = [affine_map<(d0, d1) -> ({indexing})>,
            affine_map<(d0, d1) -> (d0, d1)>],
            iterator_types = ["parallel", "parallel"]}}
            ins(%a : {buffer}) outs(%b : memref<4x8xf32>) {{
        ^bb0(%x: f32, %y: f32):
          linalg.yield %x : f32
        }}
        return
      }}""")
    (op,) = named(module, "linalg.generic")
    return module, Operand(op.operation.operands[0], maps(op)[0])


@pytest.mark.parametrize(
    ("buffer", "indexing", "along_0", "along_1"),
    [
        ("memref<4x8xf32>", "d0, d1", Access.STRIDED, Access.CONTIGUOUS),
        ("memref<8x4xf32>", "d1, d0", Access.CONTIGUOUS, Access.STRIDED),
        ("memref<8xf32>", "d1", Access.UNIFORM, Access.CONTIGUOUS),
        ("memref<4x1xf32>", "d0, 0", Access.STRIDED, Access.UNIFORM),
        ("memref<4x16xf32>", "d0, d1 * 2", Access.STRIDED, Access.STRIDED),
        ("memref<4x11xf32>", "d0, d1 + 3", Access.STRIDED, Access.CONTIGUOUS),
        ("memref<12xf32>", "d0 + d1", Access.CONTIGUOUS, Access.CONTIGUOUS),
        ("memref<8xf32, strided<[2]>>", "d1", Access.UNIFORM, Access.STRIDED),
        ("memref<4x4xf32>", "d0, d1 floordiv 2", Access.STRIDED, Access.STRIDED),
    ],
)
def test_access(buffer: str, indexing: str, along_0: Access, along_1: Access) -> None:
    module, x = operand(buffer, indexing)
    assert (x.access(0), x.access(1)) == (along_0, along_1)
    assert str(x.element) == "f32"
    assert not x.is_scalar
    assert module


@pytest.mark.parametrize(
    ("text", "factor"),
    [
        ("d1", 1), ("d0", 0), ("7", 0), ("d1 * 3 + d0", 3), ("d1 + d1", 2),
        ("d1 - d0", 1), ("d1 mod 4", None), ("d1 floordiv 2 + d0", None),
        ("d0 mod 4", 0), ("d0 floordiv 2 + d1", 1),
    ],
)  # fmt: skip
def test_coefficients(text: str, factor: int | None) -> None:
    assert coefficient(expression(text), 1) == factor


def test_additions_of_zero_and_products_with_one_are_not_made() -> None:
    module = ir.Module.parse("func.func @f(%a: index) { return }")
    block = module.body.operations[0].operation.regions[0].blocks[0]
    with ir.InsertionPoint.at_block_begin(block):
        x = block.arguments[0]
        assert add(x, index(0)) == x
        assert add(index(0), x) == x
        assert multiply(x, index(1)) == x
        assert multiply(index(1), x) == x
        assert constant_of(add(index(3), index(4))) == 7
        assert constant_of(multiply(index(3), index(4))) == 12
        assert add(x, index(2)).owner.name == "arith.addi"
        assert multiply(x, index(2)).owner.name == "arith.muli"
        assert constant_of(x) is None
        assert constant_of(arith.addi(x, x)) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("d0 * 3 + d1", 22), ("d1 - d0", -4), ("d0 + 5", 10), ("9", 9),
        ("d0 floordiv 2", 2), ("d0 ceildiv 2", 3), ("d0 mod 3", 2),
        ("(d0 + d1) * 2", 24),
    ],
)  # fmt: skip
def test_expressions_become_arithmetic(text: str, value: int) -> None:
    """Canonicalized on constants d0 = 5, d1 = 7 (or 1, where it is subtracted)."""
    module = ir.Module.parse("func.func @f() -> index { %c = arith.constant 0 : index "
                             "return %c : index }")  # fmt: skip
    block = module.body.operations[0].operation.regions[0].blocks[0]
    end = list(block.operations)[-1]
    second = 1 if "d1 - d0" in text else 7
    with ir.InsertionPoint(end):
        made = apply(expression(text), [index(5), index(second)])
    end.operation.operands[0] = made
    run_pipeline(module, ("canonicalize",))
    (left,) = named(module, "arith.constant")
    assert left.operation.attributes["value"].value == value
