"""SME: a task's product becomes a call of the function that has its tiles.

On tensors it is marked and reads the panel of a packed weight; it stays a generic that
says what it computes.  On buffers it is three addresses, three extents, and how far the
operands' rows lie apart:

    for m, n, k: out[m][n] += left[m][k] * right[k][n]
"""

from __future__ import annotations

from nanoloom.errors import Error
from nanoloom.ir.access import Operand, coefficient, index
from nanoloom.ir.linalg_query import Op, inputs, maps
from nanoloom.ir.mlir import arith, ir, memref
from nanoloom.nest.contraction import Contraction
from nanoloom.schedule.language import Nanokernel
from nanoloom.vector.addresses import address, distance
from nanoloom.vector.nanokernel.amx.panels import (
    in_own_room,
    marked,
    panel_map,
    panel_of,
    starts_at_zero,
)
from nanoloom.vector.nanokernel.amx.product import drop_init
from nanoloom.vector.nanokernel.amx.tile_edges import place_of_dim, room
from nanoloom.vector.nanokernel.sme.function import NAME, ROOM, add_function
from nanoloom.vector.nanokernel.tile.extents import most_results
from nanoloom.vector.nanokernel.tile.tile import origin, packed_argument

MARK = "nanoloom.sme"  # on a generic: the dimension of its rows
COLUMN = "nanoloom.sme_column"
DEPTH = "nanoloom.sme_depth"  # the dimension that is summed over
FRESH = "nanoloom.sme_fresh"  # 1: the sums start from zero, not from the result


def require_outer_products(op: Op, shape: Contraction, plan: Nanokernel) -> None:
    """Raise Error unless the function computes all of the product that is its own."""
    if len(shape.reduced) != 1 or shape.extents[shape.reduced[0]] < 0:
        raise Error("outer products run a whole sum, over a single dimension")
    left = maps(op)[shape.left].results[-1]
    if coefficient(left, shape.reduced[0]) != 1:
        raise Error("outer products read the left operand's rows along the sum")
    long = [d for d in shape.result if most_results(op, d) != 1]
    rows = [d for d in long if d in shape.rows]
    if len(rows) > 1 or set(long) - {*rows, shape.column}:
        raise Error("outer products have one dimension of rows, and one of columns")
    if not plan.packed and not shape.contiguous:
        raise Error("the right operand's innermost dimension is not the result's")
    if plan.depth or plan.copy_rhs:
        raise Error("outer products cut and copy by themselves: no depth, no copied")


def panel_width(op: Op, shape: Contraction) -> int:
    """Columns of a panel of the packed weight."""
    logical, _ = origin(op.operation.operands[shape.right])
    return ir.RankedTensorType(packed_argument(logical).type).shape[-1]


def use_outer_products(
    op: Op, shape: Contraction, plan: Nanokernel, row: int | None
) -> None:
    """Mark a task's contraction, and let it read its panel (on tensors)."""
    left, other, out = (maps(op)[number] for number in (shape.left, shape.right, 2))
    right = inputs(op)[shape.right]
    if plan.packed:
        right, _ = panel_of(op, shape, panel_width(op, shape))
        other = panel_map(other.n_dims, shape, 1)
    sums = op.operation.operands[2]
    fresh = starts_at_zero(sums)
    if fresh:
        whole = {d: most_results(op, d) for d in shape.result}
        known: dict[int | None, int] = {d: n for d, n in whole.items() if n is not None}
        sums = in_own_room(sums, out, known, plan.lanes)
    marks = {MARK: -1 if row is None else row, COLUMN: shape.column,
             DEPTH: shape.reduced[0], FRESH: int(fresh)}  # fmt: skip
    operands = [inputs(op)[shape.left], right, sums]
    marked(op, shape, operands, [left, other, out], marks)


def lower(op: Op, module: ir.Module) -> None:
    """Replace a marked generic on buffers by a call."""
    row, column, depth, fresh = (
        op.operation.attributes[name].value  # type: ignore[attr-defined] - MLIR's stubs know no kinds of attributes
        for name in (MARK, COLUMN, DEPTH, FRESH)
    )
    left, right, out = op.operation.operands
    ways = maps(op)
    many = memref.dim(out, index(place_of_dim(ways[2], row))) if row >= 0 else index(1)
    wide = memref.dim(out, index(place_of_dim(ways[2], column)))
    deep = memref.dim(left, index(place_of_dim(ways[0], depth)))
    operands = [Operand(*x) for x in zip((left, right, out), ways, strict=True)]
    pointers, apart = list[ir.Value](), list[ir.Value]()
    for x, dim in zip(operands, (row, depth, row), strict=True):
        pointers.append(beginning(x))
        apart.append(distance(x, dim))
    kind = ir.MemRefType(out.type)
    turned = address(room(op, 1, ROOM, kind), [index(0)] * 2)
    numbers = [as_i64(x) for x in (many, wide, deep, *apart)]
    begun = arith.constant(ir.IntegerType.get_signless(1), fresh)
    call([*pointers, turned, *numbers, begun])
    add_function(module)
    if fresh:
        drop_init(op, out)
    op.operation.erase()


def beginning(x: Operand) -> ir.Value:
    """The address of what an operand has at loop variables of zero."""
    return address(x.buffer, x.indices([index(0)] * x.indexing.n_dims))


def as_i64(value: ir.Value) -> ir.Value:
    return arith.index_cast(ir.IntegerType.get_signless(64), value)


def call(given: list[ir.Value]) -> None:
    words = {
        "callee": ir.FlatSymbolRefAttr.get(NAME),
        "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(given), 0]),
    }
    ir.Operation.create("llvm.call", [], given, words)
