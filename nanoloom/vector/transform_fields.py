"""The operations that nanoloom adds to Transform scripts, and their fields.

    "nanoloom.pack"(%function) {argument, shared, column, reduced, columns, ...}
    "nanoloom.prefetch"(%function) {argument, lines, ahead, loops, level}
    "nanoloom.copies"(%function, %lanes) {bits, scalable}
    "nanoloom.whole_slices"(%function)
    "nanoloom.private_accumulator"(%stage)
    "nanoloom.store_at"(%stage) {where}
    "nanoloom.nanokernel"(%stage, %lanes) {rows, vectors, packed, family, ...}
    "nanoloom.vectorize"(%stage, %lanes) {axis, scalable, chains, form}
    "nanoloom.unroll"(%stage) {axis, count}
    "nanoloom.unroll_and_jam"(%stage) {axis, count}
    "nanoloom.pipeline"(%stage) {axis}
    "nanoloom.transpose_in_registers"(%stage) {block_bits, tail_lanes}
    "nanoloom.order"(%stage) {axes}
    "nanoloom.at_tile"(%stage)
    "nanoloom.copy_operand"(%stage, %lanes) {operand, scalable, wide}
    "nanoloom.hoist"(%stage) {operand, loop}
    "nanoloom.pad"(%stage, %lanes) {axis, to, number, scalable}
    "nanoloom.stationary"(%stage) {anchor, points, sums, resident, unroll}
    "nanoloom.scaled"(%stage, %lanes) {vectors} -> %size

and those of transform_notes.py.  Their attributes are the fields of the directives in
schedule/language.py.  How wide vectors are is a parameter of the script, which all
operations with such vectors read, and tiles of them: one number decides.
"""

# No postponed annotations here: ext reads the fields' types when the class is made.
from typing import Any

from nanoloom.ir.mlir import ext, ir, transform_dialect
from nanoloom.vector.dialect import Dialect
from nanoloom.vector.transform_notes import NOTES


class PackOp(Dialect.Operation, name="pack"):
    """A weight comes in panels, made while compiling."""

    target: ext.Operand[transform_dialect.AnyOpType]  # pyright: ignore[reportInvalidTypeForm] - read by ext
    argument: ir.IntegerAttr
    shared: ir.ArrayAttr
    column: ir.IntegerAttr
    reduced: ir.ArrayAttr
    columns: ir.IntegerAttr
    group: ir.IntegerAttr
    sums: ir.IntegerAttr
    steps: ir.IntegerAttr
    bits: ir.IntegerAttr
    differences: ir.IntegerAttr


class PrefetchOp(Dialect.Operation, name="prefetch"):
    """An argument comes into the caches before it is read."""

    target: ext.Operand[transform_dialect.AnyOpType]  # pyright: ignore[reportInvalidTypeForm] - read by ext
    argument: ir.IntegerAttr
    lines: ir.IntegerAttr
    ahead: ir.IntegerAttr
    loops: ir.ArrayAttr
    level: ir.IntegerAttr


class CopiesOp(Dialect.Operation, name="copies"):
    """What is left of stages that only copy is copied in such vectors."""

    target: ext.Operand[transform_dialect.AnyOpType]  # pyright: ignore[reportInvalidTypeForm] - read by ext
    lanes: ext.Operand[transform_dialect.ParamType]  # pyright: ignore[reportInvalidTypeForm] - read by ext
    bits: ir.IntegerAttr
    scalable: ir.IntegerAttr


class WholeSlicesOp(Dialect.Operation, name="whole_slices"):
    """A slice that is all of a tensor, as its sizes say, is the tensor."""

    target: ext.Operand[transform_dialect.AnyOpType]  # pyright: ignore[reportInvalidTypeForm] - read by ext


class PrivateAccumulatorOp(Dialect.Operation, name="private_accumulator"):
    """Sums lie in a buffer of their own until they are complete."""

    target: ext.Operand[transform_dialect.AnyOpType]  # pyright: ignore[reportInvalidTypeForm] - read by ext


class StoreAtOp(Dialect.Operation, name="store_at"):
    """Where a stage's results lie until they are read."""

    target: ext.Operand[transform_dialect.AnyOpType]  # pyright: ignore[reportInvalidTypeForm] - read by ext
    where: ir.StringAttr


class NanokernelOp(Dialect.Operation, name="nanokernel"):
    """Replace a tiled contraction by a nanokernel."""

    target: ext.Operand[transform_dialect.AnyOpType]  # pyright: ignore[reportInvalidTypeForm] - read by ext
    lanes: ext.Operand[transform_dialect.ParamType]  # pyright: ignore[reportInvalidTypeForm] - read by ext
    rows: ir.IntegerAttr
    vectors: ir.IntegerAttr
    packed: ir.IntegerAttr
    family: ir.StringAttr
    depth: ir.IntegerAttr
    copy_rhs: ir.StringAttr
    hold_lhs: ir.IntegerAttr
    unroll: ir.IntegerAttr
    convert_lhs: ir.IntegerAttr
    pin_order: ir.IntegerAttr
    keep_broadcast_live: ir.IntegerAttr
    unfused_mul_add: ir.IntegerAttr
    unmasked_fast_path: ir.IntegerAttr


class VectorizeOp(Dialect.Operation, name="vectorize"):
    """A stage works on vectors along one of its axes."""

    target: ext.Operand[transform_dialect.AnyOpType]  # pyright: ignore[reportInvalidTypeForm] - read by ext
    lanes: ext.Operand[transform_dialect.ParamType]  # pyright: ignore[reportInvalidTypeForm] - read by ext
    axis: ir.IntegerAttr
    scalable: ir.IntegerAttr
    chains: ir.IntegerAttr
    form: ir.StringAttr


class UnrollOp(Dialect.Operation, name="unroll"):
    """Some steps of a stage's axis behind each other."""

    target: ext.Operand[transform_dialect.AnyOpType]  # pyright: ignore[reportInvalidTypeForm] - read by ext
    axis: ir.IntegerAttr
    count: ir.IntegerAttr


class UnrollAndJamOp(Dialect.Operation, name="unroll_and_jam"):
    """Several points of a stage's axis at once, in the loops further in."""

    target: ext.Operand[transform_dialect.AnyOpType]  # pyright: ignore[reportInvalidTypeForm] - read by ext
    axis: ir.IntegerAttr
    count: ir.IntegerAttr


class PipelineOp(Dialect.Operation, name="pipeline"):
    """What an axis's next round reads is loaded a round ahead."""

    target: ext.Operand[transform_dialect.AnyOpType]  # pyright: ignore[reportInvalidTypeForm] - read by ext
    axis: ir.IntegerAttr


class TransposeInRegistersOp(Dialect.Operation, name="transpose_in_registers"):
    """What lies across a stage's vectors is read in squares and turned."""

    target: ext.Operand[transform_dialect.AnyOpType]  # pyright: ignore[reportInvalidTypeForm] - read by ext
    block_bits: ir.IntegerAttr
    tail_lanes: ir.IntegerAttr


class OrderOp(Dialect.Operation, name="order"):
    """The order of the loops that a stage becomes."""

    target: ext.Operand[transform_dialect.AnyOpType]  # pyright: ignore[reportInvalidTypeForm] - read by ext
    axes: ir.ArrayAttr


class AtTileOp(Dialect.Operation, name="at_tile"):
    """A stage is computed on the points of the tile that reads it."""

    target: ext.Operand[transform_dialect.AnyOpType]  # pyright: ignore[reportInvalidTypeForm] - read by ext


class CopyOperandOp(Dialect.Operation, name="copy_operand"):
    """A stage reads a copy of its part of an operand."""

    target: ext.Operand[transform_dialect.AnyOpType]  # pyright: ignore[reportInvalidTypeForm] - read by ext
    lanes: ext.Operand[transform_dialect.ParamType]  # pyright: ignore[reportInvalidTypeForm] - read by ext
    operand: ir.IntegerAttr
    scalable: ir.IntegerAttr
    wide: ir.IntegerAttr


class HoistOp(Dialect.Operation, name="hoist"):
    """A stage's copy of an operand is made in front of a loop."""

    target: ext.Operand[transform_dialect.AnyOpType]  # pyright: ignore[reportInvalidTypeForm] - read by ext
    operand: ir.IntegerAttr
    loop: ir.StringAttr


class PadOp(Dialect.Operation, name="pad"):
    """An axis is computed over a multiple, its operands filled up."""

    target: ext.Operand[transform_dialect.AnyOpType]  # pyright: ignore[reportInvalidTypeForm] - read by ext
    lanes: ext.Operand[transform_dialect.ParamType]  # pyright: ignore[reportInvalidTypeForm] - read by ext
    axis: ir.IntegerAttr
    to: ir.IntegerAttr
    number: ir.StringAttr
    scalable: ir.IntegerAttr


class StationaryOp(Dialect.Operation, name="stationary"):
    """What stays in registers, and so the order of a stage's points."""

    target: ext.Operand[transform_dialect.AnyOpType]  # pyright: ignore[reportInvalidTypeForm] - read by ext
    anchor: ir.IntegerAttr
    points: ir.ArrayAttr
    sums: ir.ArrayAttr
    resident: ir.ArrayAttr
    unroll: ir.IntegerAttr


class ScaledOp(Dialect.Operation, name="scaled"):
    """A handle of so many vectors' numbers, made in front of a stage: of vscale."""

    target: ext.Operand[transform_dialect.AnyOpType]  # pyright: ignore[reportInvalidTypeForm] - read by ext
    lanes: ext.Operand[transform_dialect.ParamType]  # pyright: ignore[reportInvalidTypeForm] - read by ext
    vectors: ir.IntegerAttr
    size: ext.Result[transform_dialect.AnyOpType]  # pyright: ignore[reportInvalidTypeForm] - read by ext


OPERANDS = ("target", "lanes")
OPERATIONS = (
    PackOp,
    PrefetchOp,
    CopiesOp,
    WholeSlicesOp,
    PrivateAccumulatorOp,
    StoreAtOp,
    NanokernelOp,
    VectorizeOp,
    UnrollOp,
    UnrollAndJamOp,
    PipelineOp,
    TransposeInRegistersOp,
    OrderOp,
    AtTileOp,
    CopyOperandOp,
    HoistOp,
    PadOp,
    StationaryOp,
    *NOTES,
)
FIELDS: dict[type[Any], tuple[str, ...]] = {
    kind: tuple(name for name in kind.__annotations__ if name not in OPERANDS)
    for kind in OPERATIONS
}
