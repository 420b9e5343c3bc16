"""nanoloom's own transform operations, so that a script says everything.

"nanoloom.nanokernel"(%root) {rows, vectors, packed, family}: the tiled contraction
becomes the target's instructions, with its epilogue, sums in registers throughout.
"""

# No postponed annotations here: ext reads the fields' types when the class is made.
from collections.abc import Callable
from typing import Any

from nanoloom.mlir import ext, interpreter, ir, transform_dialect
from nanoloom.schedule.language import Nanokernel

Lower = Callable[[ir.OpView, Nanokernel], None]


class Dialect(ext.Dialect, name="nanoloom"):
    """Transform operations written in Python."""


class NanokernelOp(Dialect.Operation, name="nanokernel"):
    """Replace a tiled contraction by a nanokernel."""

    target: ext.Operand[transform_dialect.AnyOpType]  # pyright: ignore[reportInvalidTypeForm] - read by ext
    rows: ir.IntegerAttr
    vectors: ir.IntegerAttr
    packed: ir.IntegerAttr
    family: ir.StringAttr


def apply_script(module: ir.Module, script: str, lower: Lower) -> None:
    """Run a Transform script on a kernel; `lower` makes its nanokernels.

    Raises ValueError with MLIR's diagnostics where a step does not apply.
    """
    if not ir.Context.current.is_dialect_loaded("nanoloom"):
        Dialect.load()
    attach(lower)
    sequence = ir.Module.parse(script)
    main = sequence.body.operations[0]
    interpreter.apply_named_sequence(module, main, sequence)


def attach(lower: Lower) -> None:
    """Give the operations their meaning in the current context."""

    class Interface(transform_dialect.TransformOpInterface):
        @staticmethod
        def apply(op: Any, rewriter: Any, results: Any, state: Any) -> Any:
            plan = Nanokernel(
                op.rows.value, op.vectors.value, bool(op.packed.value), op.family.value
            )
            for payload in list(state.get_payload_ops(op.target)):
                lower(payload.opview, plan)
            del rewriter, results
            return transform_dialect.DiagnosedSilenceableFailure.Success

        @staticmethod
        def allow_repeated_handle_operands(op: Any) -> bool:
            del op
            return False

    class Effects(ir.MemoryEffectsOpInterface):
        @staticmethod
        def get_effects(op: Any, effects: Any) -> None:
            transform_dialect.consumes_handle(op.op_operands, effects)
            transform_dialect.modifies_payload(effects)

    Interface.attach(NanokernelOp.OPERATION_NAME)
    Effects.attach(NanokernelOp.OPERATION_NAME)
