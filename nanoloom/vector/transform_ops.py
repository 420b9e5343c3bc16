"""nanoloom's own transform operations, so that a script says everything.

"nanoloom.nanokernel"(%root) {rows, vectors, packed, family, depth, copied, swapped}: a
tiled contraction becomes the target's instructions, with its epilogue, sums in
registers throughout.
"""

# No postponed annotations here: ext reads the fields' types when the class is made.
import re
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from nanoloom.errors import Error
from nanoloom.mlir import ext, interpreter, ir, run_pipeline, transform_dialect
from nanoloom.schedule.language import Nanokernel

Lower = Callable[[ir.OpView, Nanokernel], None]
SEQUENCE, ENTRY = "transform.named_sequence", "__transform_main"
PLACE = re.compile(r'"-":(?P<line>\d+):\d+')
DIAGNOSTIC = re.compile(rf"{PLACE.pattern}\)?: (?P<reason>.*)")


class Dialect(ext.Dialect, name="nanoloom"):
    """Transform operations written in Python."""


class NanokernelOp(Dialect.Operation, name="nanokernel"):
    """Replace a tiled contraction by a nanokernel."""

    target: ext.Operand[transform_dialect.AnyOpType]  # pyright: ignore[reportInvalidTypeForm] - read by ext
    rows: ir.IntegerAttr
    vectors: ir.IntegerAttr
    packed: ir.IntegerAttr
    family: ir.StringAttr
    depth: ir.IntegerAttr
    copied: ir.IntegerAttr
    swapped: ir.IntegerAttr


def apply_script(module: ir.Module, script: str, lower: Lower) -> None:
    """Run a Transform script on a kernel; `lower` makes its nanokernels.

    Raises nanoloom.errors.Error, where = "line N" of the script, at the first step that
    does not parse or apply.
    """
    if not ir.Context.current.is_dialect_loaded("nanoloom"):
        Dialect.load()
    attach(lower)
    run_pipeline(module, ("strip-debuginfo",))  # a place in a message is the script's
    try:
        sequence = ir.Module.parse(script)
        interpreter.apply_named_sequence(module, entry_of(sequence), sequence)
    except (ir.MLIRError, ValueError) as error:
        raise step_error(str(error)) from None


def entry_of(sequence: ir.Module) -> ir.OpView:
    """The named sequence that a script begins with."""
    for op in sequence.body.operations:
        name = op.operation.attributes.get("sym_name")
        if op.operation.name == SEQUENCE and name == ir.StringAttr.get(ENTRY):
            return op
    raise Error(f"the script has no {SEQUENCE} @{ENTRY}")


def step_error(text: str) -> Error:
    """MLIR's first diagnostic as one sentence with its line."""
    found = DIAGNOSTIC.search(text)
    if found is None:
        return Error(text.splitlines()[0])
    line = found["line"]
    return Error(found["reason"].strip(), where=f"line {line}" if line else "")


def is_needed(op: ir.Operation) -> bool:
    """Whether anything comes of a result: tiling leaves the old operations behind."""
    for result in op.results:
        for use in result.uses:
            user = use.owner.operation
            if not list(user.results) or is_needed(user):
                return True
            if user.regions and user.name != "linalg.generic":
                return True
    return False


@contextmanager
def at_line(op: Any) -> Generator[None]:
    """Errors name the line of this step of the script."""
    try:
        yield
    except Error as error:
        found = PLACE.search(str(op.operation.location))
        where = f"line {found['line']}" if found else ""
        raise Error(error.reason, where=where, hint=error.hint) from None


def attach(lower: Lower) -> None:
    """Give the operations their meaning in the current context."""

    class Interface(transform_dialect.TransformOpInterface):
        @staticmethod
        def apply(op: Any, rewriter: Any, results: Any, state: Any) -> Any:
            plan = Nanokernel(
                int(op.rows.value),
                int(op.vectors.value),
                bool(op.packed.value),
                op.family.value,
                depth=int(op.depth.value),
                copied=bool(op.copied.value),
                swapped=bool(op.swapped.value),
            )
            for payload in list(state.get_payload_ops(op.target)):
                with at_line(op):
                    if is_needed(payload):
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
            if len(op.op_operands):  # asked before the operands are verified
                transform_dialect.consumes_handle(op.op_operands, effects)
            transform_dialect.modifies_payload(effects)

    Interface.attach(NanokernelOp.OPERATION_NAME)
    Effects.attach(NanokernelOp.OPERATION_NAME)
