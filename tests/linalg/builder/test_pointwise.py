"""Generics that later stages insert: maps, bodies, tensors and buffers."""

from __future__ import annotations

from nanoloom.ir.mlir import arith, context, ir
from nanoloom.linalg.builder.pointwise import itself, pointwise
from tests.filecheck import check_text


def made(what: str, source: str, target: str, transposed: bool = False) -> str:
    """The module with one generic from a function's first argument to its second."""
    with context(), ir.Location.unknown():
        text = f"func.func @f(%x: {source}, %y: {target}) {{ return }}"
        module = ir.Module.parse(text)
        block = module.body.operations[0].operation.regions[0].blocks[0]
        x, y = block.arguments
        order = ir.AffineMap.get_permutation([1, 0])
        with ir.InsertionPoint.at_block_begin(block):
            if what == "sum":
                same = ir.AffineMap.get_identity(2)
                pointwise([x, y], y, arith.addf, [order, same])
            else:
                pointwise([x], y, itself, writing=order if transposed else None)
        assert module.operation.verify()
        return str(module)


def test_a_copy_from_buffer_to_buffer() -> None:
    check_text(
        made("copy", "memref<2x3xf32>", "memref<2x3xf32>"),
        """
    CHECK: linalg.generic {indexing_maps = [#map, #map]
    CHECK-SAME: ins(%arg0 : memref<2x3xf32>) outs(%arg1 : memref<2x3xf32>)
    CHECK: linalg.yield %in : f32
    """,
    )


def test_maps_of_reading_and_writing() -> None:
    text = made("sum", "tensor<3x2xf32>", "tensor<2x3xf32>")
    assert "indexing_maps = [#map, #map1, #map1]" in text and "arith.addf" in text
    text = made("copy", "tensor<3x2xf32>", "tensor<2x3xf32>", transposed=True)
    check_text(
        text,
        """
    CHECK: #[[SAME:.*]] = affine_map<(d0, d1) -> (d0, d1)>
    CHECK: #[[TURNED:.*]] = affine_map<(d0, d1) -> (d1, d0)>
    CHECK: indexing_maps = [#[[SAME]], #[[TURNED]]]
    CHECK: -> tensor<2x3xf32>
    """,
    )
