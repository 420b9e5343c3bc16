"""nanoloom's own transform operations, so that a script says everything.

What they are called stands in transform_fields.py; what they do is told by who applies
a script.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

from nanoloom.errors import Error
from nanoloom.ir.mlir import interpreter, ir, run_pipeline, transform_dialect
from nanoloom.nest.extent import Lanes
from nanoloom.vector.dialect import Dialect, touch_no_memory
from nanoloom.vector.transform_fields import FIELDS, OPERATIONS, SCALED, WIDE
from nanoloom.vector.widths import elements

Meaning = Callable[[ir.OpView, dict[str, Any]], None]  # of an operation, and its fields
NOTHING: Mapping[str, Meaning] = MappingProxyType({})
# Operations of scripts that had other names.
RETIRED = {"turn": "transpose_in_registers", "store_apart": "private_accumulator"}
SEQUENCE, ENTRY = "transform.named_sequence", "__transform_main"
PLACE = re.compile(r'"-":(?P<line>\d+):\d+')
DIAGNOSTIC = re.compile(rf"{PLACE.pattern}\)?: (?P<reason>.*)")


def apply_script(
    module: ir.Module, script: str, meanings: Mapping[str, Meaning]
) -> None:
    """Run a Transform script on a kernel.

    meanings: what nanoloom's operations do, by their names without the dialect's.
    Raises nanoloom.errors.Error, where = "line N" of the script, at the first step that
    does not parse or apply.
    """
    require_current_names(script)
    load_operations()
    _Meanings.current = meanings
    # A place in a message is the script's.
    run_pipeline(module, ("strip-debuginfo",), verify=False)
    try:
        sequence = ir.Module.parse(script)
        interpreter.apply_named_sequence(module, entry_of(sequence), sequence)
    except (ir.MLIRError, ValueError) as error:
        raise step_error(str(error)) from None


def require_current_names(script: str) -> None:
    """Error, with the line, for an operation by a name that it has no longer."""
    for old, new in RETIRED.items():
        before, found, _ = script.partition(f'"nanoloom.{old}"')
        if found:
            where = f"line {before.count(chr(10)) + 1}"
            raise Error(f"nanoloom.{old} is called nanoloom.{new} now", where=where)


def load_operations() -> None:
    """Make the operations known in the current context, once: it takes long."""
    context = ir.Context.current
    if context.is_dialect_loaded("nanoloom"):
        return
    for used in ("irdl", "transform"):
        _ = context.dialects[used]  # loads it
    Dialect.load()
    touch_no_memory()
    for word, kind in OPERATIONS.items():
        attach(kind, make_size if word == SCALED else meaning_of(word))


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


Apply = Callable[[Any, Any, Any], None]  # an operation, its results, the state


def attach(kind: type[Any], apply_op: Apply) -> None:
    """Let an operation do this in the current context.

    One with a result reads its handle only: the tiling behind it does so at once.
    """

    class Interface(transform_dialect.TransformOpInterface):
        @staticmethod
        def apply(op: Any, rewriter: Any, results: Any, state: Any) -> Any:
            del rewriter
            with at_line(op):
                apply_op(op, results, state)
            return transform_dialect.DiagnosedSilenceableFailure.Success

        @staticmethod
        def allow_repeated_handle_operands(op: Any) -> bool:
            del op
            return False

    class Effects(ir.MemoryEffectsOpInterface):
        @staticmethod
        def get_effects(op: Any, effects: Any) -> None:
            consumed = 0 if len(op.results) else 1
            target, others = op.op_operands[:consumed], op.op_operands[consumed:]
            if len(target):  # asked before the operands are verified
                transform_dialect.consumes_handle(target, effects)
            if len(others):
                transform_dialect.only_reads_handle(others, effects)
            if len(op.results):
                transform_dialect.produces_handle(op.results, effects)
            transform_dialect.modifies_payload(effects)

    Interface.attach(kind.OPERATION_NAME)
    Effects.attach(kind.OPERATION_NAME)


def meaning_of(word: str) -> Apply:
    """What the current meanings say of an operation, done to what it is given."""

    def apply_op(op: Any, results: Any, state: Any) -> None:
        del results
        meaning = _Meanings.current.get(word, do_nothing)
        values = {name: value_of(getattr(op, name)) for name in FIELDS[word]}
        if word in WIDE:
            values["lanes"] = number_of(op.lanes, state)
        for payload in list(state.get_payload_ops(op.target)):
            if is_needed(payload):
                meaning(payload.opview, values)

    return apply_op


def make_size(op: Any, results: Any, state: Any) -> None:
    """The size of a tile of scalable vectors, in front of its stage."""
    lanes = Lanes(number_of(op.lanes, state), scalable=True)
    found = list(state.get_payload_ops(op.target))
    if len(found) != 1:
        raise Error(f"{len(found)} stages have a size: one is wanted")
    with ir.InsertionPoint(found[0]), found[0].location:
        size = elements(lanes, value_of(op.vectors))
    assert isinstance(size, ir.Value)  # of a scalable width
    results.set_ops(op.size, [size.owner])


def number_of(parameter: ir.Value, state: Any) -> int:
    """The number that a parameter stands for; Error if there are several, or none."""
    found = [each.value for each in state.get_params(parameter)]
    if len(found) != 1:
        raise Error(f"the width of vectors is {found}: one number is wanted")
    return found[0]
