"""nanoloom's own transform operations, so that a script says everything.

    "nanoloom.pack"(%function) {argument, shared, column, reduced, columns, ...}
    "nanoloom.prefetch"(%function) {argument, lines, ahead}
    "nanoloom.store_apart"(%stage)
    "nanoloom.store_at"(%stage) {where}
    "nanoloom.nanokernel"(%stage) {rows, vectors, packed, family, depth, ...}
    "nanoloom.vectorize"(%stage) {axis, lanes, scalable, chains}
    "nanoloom.unroll"(%stage) {axis, count}
    "nanoloom.unroll_and_jam"(%stage) {axis, count}
    "nanoloom.pipeline"(%stage) {axis}
    "nanoloom.order"(%stage) {axes}
    "nanoloom.at_tile"(%stage)
    "nanoloom.copy_operand"(%stage) {operand}
    "nanoloom.hoist"(%stage) {operand, loop}

Their attributes are the fields of the directives in schedule/language.py.
"""

# No postponed annotations here: ext reads the fields' types when the class is made.
import re
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

from nanoloom.errors import Error
from nanoloom.mlir import ext, interpreter, ir, run_pipeline, transform_dialect

Meaning = Callable[[ir.OpView, dict[str, Any]], None]  # of an operation, and its fields
NOTHING: Mapping[str, Meaning] = MappingProxyType({})
SEQUENCE, ENTRY = "transform.named_sequence", "__transform_main"
PLACE = re.compile(r'"-":(?P<line>\d+):\d+')
DIAGNOSTIC = re.compile(rf"{PLACE.pattern}\)?: (?P<reason>.*)")


class Dialect(ext.Dialect, name="nanoloom"):
    """Transform operations written in Python."""


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


class PrefetchOp(Dialect.Operation, name="prefetch"):
    """An argument comes into the caches before it is read."""

    target: ext.Operand[transform_dialect.AnyOpType]  # pyright: ignore[reportInvalidTypeForm] - read by ext
    argument: ir.IntegerAttr
    lines: ir.IntegerAttr
    ahead: ir.IntegerAttr


class StoreApartOp(Dialect.Operation, name="store_apart"):
    """Sums lie in a buffer of their own until they are complete."""

    target: ext.Operand[transform_dialect.AnyOpType]  # pyright: ignore[reportInvalidTypeForm] - read by ext


class StoreAtOp(Dialect.Operation, name="store_at"):
    """Where a stage's results lie until they are read."""

    target: ext.Operand[transform_dialect.AnyOpType]  # pyright: ignore[reportInvalidTypeForm] - read by ext
    where: ir.StringAttr


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


class VectorizeOp(Dialect.Operation, name="vectorize"):
    """A stage works on vectors along one of its axes."""

    target: ext.Operand[transform_dialect.AnyOpType]  # pyright: ignore[reportInvalidTypeForm] - read by ext
    axis: ir.IntegerAttr
    lanes: ir.IntegerAttr
    scalable: ir.IntegerAttr
    chains: ir.IntegerAttr


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
    operand: ir.IntegerAttr


class HoistOp(Dialect.Operation, name="hoist"):
    """A stage's copy of an operand is made in front of a loop."""

    target: ext.Operand[transform_dialect.AnyOpType]  # pyright: ignore[reportInvalidTypeForm] - read by ext
    operand: ir.IntegerAttr
    loop: ir.StringAttr


OPERATIONS = (
    PackOp,
    PrefetchOp,
    StoreApartOp,
    StoreAtOp,
    NanokernelOp,
    VectorizeOp,
    UnrollOp,
    UnrollAndJamOp,
    PipelineOp,
    OrderOp,
    AtTileOp,
    CopyOperandOp,
    HoistOp,
)
FIELDS: dict[type[Any], tuple[str, ...]] = {
    kind: tuple(name for name in kind.__annotations__ if name != "target")
    for kind in OPERATIONS
}


def apply_script(
    module: ir.Module, script: str, meanings: Mapping[str, Meaning]
) -> None:
    """Run a Transform script on a kernel.

    meanings: what nanoloom's operations do, by their names without the dialect's.
    Raises nanoloom.errors.Error, where = "line N" of the script, at the first step that
    does not parse or apply.
    """
    load_operations()
    _Meanings.current = meanings
    # A place in a message is the script's.
    run_pipeline(module, ("strip-debuginfo",), verify=False)
    try:
        sequence = ir.Module.parse(script)
        interpreter.apply_named_sequence(module, entry_of(sequence), sequence)
    except (ir.MLIRError, ValueError) as error:
        raise step_error(str(error)) from None


def load_operations() -> None:
    """Make the operations known in the current context, once: it takes long."""
    if ir.Context.current.is_dialect_loaded("nanoloom"):
        return
    Dialect.load()
    for kind, fields in FIELDS.items():
        attach(kind, fields)


class _Meanings:
    """Of the script that is being applied: one at a time is, in a process."""

    current: Mapping[str, Meaning] = NOTHING


def do_nothing(op: ir.OpView, fields: dict[str, Any]) -> None:
    """What an operation does that is only read."""
    del op, fields


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
    if op.operation.name == "func.func":
        return True
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


def value_of(attribute: Any) -> Any:
    """An attribute as Python's number, text or tuple."""
    if isinstance(attribute, ir.ArrayAttr):
        return tuple(value_of(part) for part in attribute)
    return attribute.value


def attach(kind: type[Any], fields: tuple[str, ...]) -> None:
    """Let an operation do in the current context what the meanings say."""
    word = kind.OPERATION_NAME.partition(".")[2]

    class Interface(transform_dialect.TransformOpInterface):
        @staticmethod
        def apply(op: Any, rewriter: Any, results: Any, state: Any) -> Any:
            meaning = _Meanings.current.get(word, do_nothing)
            with at_line(op):
                values = {name: value_of(getattr(op, name)) for name in fields}
                for payload in list(state.get_payload_ops(op.target)):
                    if is_needed(payload):
                        meaning(payload.opview, values)
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

    Interface.attach(kind.OPERATION_NAME)
    Effects.attach(kind.OPERATION_NAME)
