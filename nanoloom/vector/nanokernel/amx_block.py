"""Whole AMX tiles on the stack, where a result's tile reaches over its edge.

Tile registers are loaded and stored whole; what is inside the result is copied.
"""

from __future__ import annotations

from nanoloom.kernels.structure import Op, maps
from nanoloom.mlir import arith, ir, linalg, memref
from nanoloom.vector.access import index
from nanoloom.vector.nanokernel import amx_instructions as tiles
from nanoloom.vector.nanokernel.vnni_panels import MARK

WIDTH = 2 * tiles.COLUMNS


def whole_block(op: Op, height: int) -> ir.Value:
    """Room for whole tiles on the stack, made once at the function's beginning."""
    function = op.operation
    while function.name != "func.func":
        parent = function.parent
        assert parent is not None
        function = parent.operation
    sums = ir.MemRefType(op.operation.operands[2].type).element_type
    kind = ir.MemRefType.get([height, WIDTH], sums)
    with ir.InsertionPoint.at_block_begin(function.regions[0].blocks[0]):
        return memref.alloca(kind, [], [])


def copy_out(
    op: Op, block: ir.Value, out: ir.Value, height: int, count: ir.Value | None
) -> None:
    """Copy the rows and columns of a block that are inside the result."""
    rank = ir.MemRefType(out.type).rank
    whole = ir.AffineMap.get_identity(rank)
    moved = inside(block, out, height, count)
    copy(moved, out, (in_block(op, rank), whole))


def copy_in(
    op: Op, block: ir.Value, out: ir.Value, height: int, count: ir.Value | None
) -> None:
    """Copy what is inside the result into a block; the rest of it stays unknown."""
    rank = ir.MemRefType(out.type).rank
    whole = ir.AffineMap.get_identity(rank)
    moved = inside(block, out, height, count)
    copy(out, moved, (whole, in_block(op, rank)))


def inside(
    block: ir.Value, out: ir.Value, height: int, count: ir.Value | None
) -> ir.Value:
    """The result's part of a block: its last rows, those of a tile that begins earlier.

    As wide as the result, so that a copy in either direction has its extents.
    """
    element = ir.MemRefType(block.type).element_type
    shift = index(0) if count is None else arith.subi(index(height), count)
    many = index(height) if count is None else count
    width = memref.dim(out, index(ir.MemRefType(out.type).rank - 1))
    layout = f"strided<[{WIDTH}, 1], offset: ?>"
    return memref.subview(
        block,
        [shift, 0],
        [many, width],
        [1, 1],
        result_type=ir.Type.parse(f"memref<?x?x{element}, {layout}>"),
    )


def in_block(op: Op, rank: int) -> ir.AffineMap:
    """Where an element of the result lies in the block."""
    row = op.operation.attributes[MARK].value  # type: ignore[attr-defined]
    dims = [ir.AffineDimExpr.get(d) for d in range(rank)]
    place = place_of_dim(maps(op)[2], row)
    rows = dims[place] if row >= 0 else ir.AffineConstantExpr.get(0)
    return ir.AffineMap.get(rank, 0, [rows, dims[-1]])


def copy(
    source: ir.Value, target: ir.Value, indexings: tuple[ir.AffineMap, ir.AffineMap]
) -> None:
    """A generic that copies; loops over the result's dimensions."""
    element = ir.MemRefType(target.type).element_type
    parallel = ir.Attribute.parse("#linalg.iterator_type<parallel>")
    made = linalg.GenericOp(
        [],
        [source],
        [target],
        ir.ArrayAttr.get([ir.AffineMapAttr.get(m) for m in indexings]),
        ir.ArrayAttr.get([parallel] * indexings[0].n_dims),
    )
    block = made.regions[0].blocks.append(element, element)
    with ir.InsertionPoint(block):
        linalg.YieldOp([block.arguments[0]])


def place_of_dim(indexing: ir.AffineMap, dim: int) -> int:
    """Which of an operand's dimensions a loop runs along, 0 if none."""
    for place, expr in enumerate(indexing.results):
        if isinstance(expr, ir.AffineDimExpr) and expr.position == dim:
            return place
    return 0
