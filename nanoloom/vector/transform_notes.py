"""Operations of Transform scripts that change no loop, but what is made of a stage.

    "nanoloom.versions"(%stage) {rows}
    "nanoloom.balance"(%stage)
    "nanoloom.tail"(%stage) {vectors}
    "nanoloom.reduce_jointly"(%stage) {count}
    "nanoloom.reuse_window"(%stage)
    "nanoloom.init_with_addend"(%stage)
    "nanoloom.use_instruction"(%stage) {name}
    "nanoloom.stack"(%function) {bytes}
    "nanoloom.vectorize_rest"(%function) {bits}
    "nanoloom.scalarize"(%stage)

The first ones are of nanokernels' tiles, the last but those of a kernel of the code of
a stage's vectors.
"""

# No postponed annotations here: ext reads the fields' types when the class is made.
from nanoloom.ir.mlir import ext, ir, transform_dialect
from nanoloom.vector.dialect import Dialect


class VersionsOp(Dialect.Operation, name="versions"):
    """A nanokernel's tiles of few rows have code of their own."""

    target: ext.Operand[transform_dialect.AnyOpType]  # pyright: ignore[reportInvalidTypeForm] - read by ext
    rows: ir.ArrayAttr


class BalanceOp(Dialect.Operation, name="balance"):
    """A nanokernel's tiles have as many rows as each other, but for one."""

    target: ext.Operand[transform_dialect.AnyOpType]  # pyright: ignore[reportInvalidTypeForm] - read by ext


class TailOp(Dialect.Operation, name="tail"):
    """A nanokernel's last tile of columns has fewer vectors."""

    target: ext.Operand[transform_dialect.AnyOpType]  # pyright: ignore[reportInvalidTypeForm] - read by ext
    vectors: ir.IntegerAttr


class ReduceJointlyOp(Dialect.Operation, name="reduce_jointly"):
    """So many sums along vectors become one vector."""

    target: ext.Operand[transform_dialect.AnyOpType]  # pyright: ignore[reportInvalidTypeForm] - read by ext
    count: ir.IntegerAttr


class ReuseWindowOp(Dialect.Operation, name="reuse_window"):
    """Steps of a window come in the order of the places that they read."""

    target: ext.Operand[transform_dialect.AnyOpType]  # pyright: ignore[reportInvalidTypeForm] - read by ext


class InitWithAddendOp(Dialect.Operation, name="init_with_addend"):
    """A sum begins with what its reader adds to it."""

    target: ext.Operand[transform_dialect.AnyOpType]  # pyright: ignore[reportInvalidTypeForm] - read by ext


class UseInstructionOp(Dialect.Operation, name="use_instruction"):
    """Several steps of a stage's sum are one instruction."""

    target: ext.Operand[transform_dialect.AnyOpType]  # pyright: ignore[reportInvalidTypeForm] - read by ext
    name: ir.StringAttr


class StackOp(Dialect.Operation, name="stack"):
    """Temporaries of so many bytes are on the stack."""

    target: ext.Operand[transform_dialect.AnyOpType]  # pyright: ignore[reportInvalidTypeForm] - read by ext
    bytes: ir.IntegerAttr


class VectorizeRestOp(Dialect.Operation, name="vectorize_rest"):
    """What is no stage has vectors of so many bits times vscale."""

    target: ext.Operand[transform_dialect.AnyOpType]  # pyright: ignore[reportInvalidTypeForm] - read by ext
    bits: ir.IntegerAttr


class ScalarizeOp(Dialect.Operation, name="scalarize"):
    """A stage's numbers are computed one by one."""

    target: ext.Operand[transform_dialect.AnyOpType]  # pyright: ignore[reportInvalidTypeForm] - read by ext


NOTES = (
    VersionsOp,
    BalanceOp,
    TailOp,
    ReduceJointlyOp,
    ReuseWindowOp,
    InitWithAddendOp,
    UseInstructionOp,
    StackOp,
    VectorizeRestOp,
    ScalarizeOp,
)
