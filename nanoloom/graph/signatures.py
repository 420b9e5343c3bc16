"""What If, Loop and Scan must agree on with the bodies inside them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import onnx_ir as ir

from nanoloom.errors import DataDependent, ModelError, Unsupported
from nanoloom.graph.agreement import WORDS, word
from nanoloom.graph.types import integer_sources, is_static, shape_of

LEADING = 2  # a Loop's number of trips and condition stand before what it carries


def require_signature(node: ir.Node) -> None:
    """Raise ModelError if a node and its bodies take or give other numbers of values.

    A Scan is one without a batch axis (set 9 or newer).
    """
    given, made = len(node.inputs), len(node.outputs)
    match node.op_type:
        case "If":
            require_one_element(node, 0)
            for name in ("then_branch", "else_branch"):
                require_counts(node, name, 0, made)
        case "Loop":
            carried = given - LEADING
            require_least(node, made, carried, "carries")
            for index in range(LEADING):
                require_one_element(node, index)
            require_counts(node, "body", given, 1 + made)
        case _:
            count = node.attributes["num_scan_inputs"].as_int()
            if not 1 <= count <= given:
                raise invalid(node, f"it scans {count} inputs and has {given}")
            require_least(node, made, given - count, "has as states")
            require_counts(node, "body", given, made)
            require_sequences(node, count)


def require_counts(node: ir.Node, name: str, takes: int, gives: int) -> None:
    body = node.attributes[name].as_graph()
    for what, found, wanted in (
        ("inputs", len(body.inputs), takes),
        ("outputs", len(body.outputs), gives),
    ):
        if found != wanted:
            raise invalid(node, f"its {name} has {found} {what}, expected {wanted}")


def require_least(node: ir.Node, outputs: int, states: int, word: str) -> None:
    if outputs < states:
        raise invalid(node, f"it has {outputs} outputs and {word} {states} values")


def require_one_element(node: ir.Node, index: int) -> None:
    """A number of trips or a condition is one number."""
    value = node.inputs[index]
    if value is not None and is_static(value) and math.prod(shape_of(value)) != 1:
        shape = list(shape_of(value))
        raise invalid(
            node, f"its input {value.name} has shape {shape}, not one element"
        )


def to_one_element(value: ir.Value) -> None:
    """A body's number of the trip, or its condition: of the rank that is declared."""
    shape = value.shape
    if shape is not None and is_static(value) and math.prod(shape_of(value)) == 1:
        return
    value.shape = ir.Shape([1] if shape is not None and len(shape) else [])


def require_condition(node: ir.Node, value: ir.Value) -> None:
    """What a Loop's body gives first says whether another trip follows."""
    if value.dtype != ir.DataType.BOOL or math.prod(shape_of(value)) != 1:
        found = f"{named(value)} {list(shape_of(value))}"
        raise invalid(node, f"its condition {value.name} is {found}, not one bool")


def require_same_types(
    node: ir.Node, before: Sequence[ir.Value], after: Sequence[ir.Value]
) -> None:
    """What a body carries on to its next trip keeps its element type."""
    for x, y in zip(before, after, strict=True):
        if x.dtype != y.dtype:
            one, other = named(x), named(y)
            raise invalid(node, f"state {x.name} is {one} before, {other} after a step")


def require_sequences(node: ir.Node, count: int) -> None:
    """The axes and directions of a Scan, one for each sequence that goes in or out."""
    states = len(node.inputs) - count
    for part, number in (("input", count), ("output", len(node.outputs) - states)):
        for what in ("axes", "directions"):
            name = f"scan_{part}_{what}"
            given = node.attributes.get(name)
            found = [0] * number if given is None else list(given.as_ints())
            if len(found) != number:
                raise invalid(
                    node, f"{name} has {len(found)} numbers for {number} {part}s"
                )
            if what == "directions" and not set(found) <= {0, 1}:
                raise invalid(node, f"{name} is {found}, of 0 and 1 only")


def require_axis(node: ir.Node, name: str, axis: int, rank: int) -> None:
    if not -rank <= axis < rank:
        raise invalid(node, f"{name} has the axis {axis} of {rank} dimensions")


def require_one_length(node: ir.Node, lengths: Sequence[int]) -> None:
    if len(set(lengths)) > 1:
        raise invalid(node, f"its sequences have the lengths {list(lengths)}")


def ints(node: ir.Node, name: str, count: int) -> list[int]:
    found = node.attributes.get(name)
    return list(found.as_ints()) if found is not None else [0] * count


def scanned(node: ir.Node, axes: list[int]) -> int:
    """How long the sequences of a Scan are, along these axes."""
    lengths: list[int] = []
    for index, axis in enumerate(axes, len(node.inputs) - len(axes)):
        shape = shape_of(static_input(node, index))
        require_axis(node, "scan_input_axes", axis, len(shape))
        lengths.append(shape[axis])
    require_one_length(node, lengths)
    return lengths[0]


def static_input(node: ir.Node, index: int) -> ir.Value:
    """The tensor that comes in from outside, whose shape is known."""
    actual = node.inputs[index]
    if actual is None or not is_static(actual):
        raise DataDependent(
            f"the shape of its input {index} is not known",
            integer_sources([actual]),
            where=f"node {node.name} ({node.op_type})",
        )
    if not isinstance(actual.type, ir.TensorType):
        raise Unsupported(
            f"its input {index} is no tensor",
            where=f"node {node.name} ({node.op_type})",
        )
    return actual


def named(value: ir.Value) -> str:
    """Its element type in a message."""
    if value.dtype is None:
        return "of no type"
    kind = word(value.dtype)
    return WORDS.get(kind, kind)


def invalid(node: ir.Node, reason: str) -> ModelError:
    return ModelError(reason, where=f"node {node.name} ({node.op_type})")
