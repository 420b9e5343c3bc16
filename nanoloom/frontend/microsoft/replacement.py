"""What an expansion is written with: one node's inputs and attributes, and new nodes.

What is asked for is honoured; `unread` tells what a node has beyond that, so that
nothing of it is left out in silence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx_ir as ir

from nanoloom.frontend.microsoft.inferred_types import (
    Dimension,
    InferredTypes,
    constant_tensor,
)
from nanoloom.frontend.node_names import Names

VERSION = 23  # of ONNX's operators that stand for others, whatever the model's own is
BEFORE = "use the model as it was before ONNX Runtime's tools rewrote it"
Kind = ir.AttributeType


class Refused(Exception):
    """A node that stays as it is: why, and what to do about it."""

    def __init__(self, reason: str, hint: str = BEFORE) -> None:
        super().__init__(reason)
        self.reason, self.hint = reason, hint


@dataclass
class Replacement:
    """The nodes that take the place of `node`, in order.

    types: of all values before it.  node_names, value_names: what is taken.
    """

    node: ir.Node
    types: InferredTypes
    node_names: Names
    value_names: Names
    made: list[ir.Node] = field(default_factory=list[ir.Node])
    read_inputs: set[int] = field(default_factory=set[int])
    read_attributes: set[str] = field(default_factory=set[str])

    # ---- the node

    def input(self, index: int) -> ir.Value:
        value = self.optional(index)
        if value is None:
            raise Refused(f"its input {index} is missing")
        return value

    def optional(self, index: int) -> ir.Value | None:
        """None for an input that is left out."""
        self.read_inputs.add(index)
        inputs = self.node.inputs
        return inputs[index] if index < len(inputs) else None

    def wants(self, index: int) -> bool:
        """Whether somebody reads an output."""
        outputs = self.node.outputs
        if index >= len(outputs) or not outputs[index].name:
            return False
        return bool(outputs[index].uses()) or outputs[index].is_graph_output()

    def attribute(self, name: str, kind: ir.AttributeType) -> Any:
        """Its value, or None where it is not given."""
        self.read_attributes.add(name)
        given = self.node.attributes.get(name)
        if given is not None and given.type != kind:
            raise Refused(f"its attribute {name} is no {kind.name}")
        return None if given is None else given.value

    def int(self, name: str, default: int | None = None) -> int:
        return self.required(name, self.attribute(name, Kind.INT), default)

    def positive(self, name: str, default: int | None = None) -> int:
        """A count or a size."""
        if (given := self.int(name, default)) < 1:
            raise Refused(f"its attribute {name} is {given}")
        return given

    def float(self, name: str, default: float | None = None) -> float:
        return self.required(name, self.attribute(name, Kind.FLOAT), default)

    def string(self, name: str, default: str | None = None) -> str:
        return self.required(name, self.attribute(name, Kind.STRING), default)

    def ints(self, name: str) -> Sequence[int] | None:
        return self.attribute(name, Kind.INTS) or None

    def floats(self, name: str) -> Sequence[float] | None:
        return self.attribute(name, Kind.FLOATS) or None

    def required(self, name: str, given: Any, default: Any) -> Any:
        if given is None and default is None:
            raise Refused(f"it lacks the attribute {name}")
        return default if given is None else given

    def ignore(self, *attributes: str) -> None:
        """Attributes that decide about the speed of another runtime only."""
        self.read_attributes.update(attributes)

    def require(self, name: str, value: int) -> None:
        """Refuse another value of an attribute than its default."""
        if (given := self.int(name, value)) != value:
            raise Refused(f"its attribute {name} = {given} is not supported")

    def unread(self) -> str:
        """What of the node is not honoured; the empty string for nothing."""
        for name in self.node.attributes:
            if name not in self.read_attributes and not name.startswith("_"):
                return f"its attribute {name} is not supported"
        for index, value in enumerate(self.node.inputs):
            if value is not None and index not in self.read_inputs:
                return f"its input {index} ({value.name}) is not supported"
        return ""

    # ---- what is known of values

    def dtype(self, value: ir.Value) -> ir.DataType:
        found = self.types.dtype(value)
        if found is None:
            raise unknown("element type", value)
        return found

    def shape(self, value: ir.Value) -> list[Dimension]:
        found = self.types.shape(value)
        if found is None:
            raise unknown("number of dimensions", value)
        return found

    def rank(self, value: ir.Value) -> int:
        return len(self.shape(value))

    def extent(self, value: ir.Value, axis: int) -> int | None:
        """A dimension that the model fixes; None for others."""
        shape = self.types.shape(value)
        if shape is None or not -len(shape) <= axis < len(shape):
            return None
        found = shape[axis]
        return found if isinstance(found, int) else None

    def tensor(self, value: ir.Value) -> ir.TensorProtocol:
        """A constant's."""
        found = constant_tensor(value)
        if found is None:
            raise Refused(f"its input {value.name} is computed, not a constant")
        return found

    # ---- new nodes

    def op(
        self,
        op_type: str,
        *inputs: ir.Value | None,
        version: int = VERSION,
        **attributes: Any,
    ) -> ir.Value:
        """A node with one output."""
        return self.ops(op_type, *inputs, outputs=1, version=version, **attributes)[0]

    def ops(
        self,
        op_type: str,
        *inputs: ir.Value | None,
        outputs: int,
        version: int = VERSION,
        **attributes: Any,
    ) -> Sequence[ir.Value]:
        """A node with several outputs; attributes that are None are left out."""
        given = {k: v for k, v in attributes.items() if v is not None}
        name = self.node_names.take(f"{self.node.name}/{op_type}")
        node = ir.node(
            op_type, inputs, given, num_outputs=outputs, version=version, name=name
        )
        for index, value in enumerate(node.outputs):
            value.name = self.value_names.take(f"{name}.{index}" if index else name)
        node.metadata_props.update(self.node.metadata_props)
        self.made.append(node)
        return node.outputs

    def constant(self, array: np.ndarray | ir.TensorProtocol) -> ir.Value:
        tensor = ir.Tensor(array) if isinstance(array, np.ndarray) else array
        made = self.op("Constant", value=tensor)
        made.type, made.shape = (
            ir.TensorType(tensor.dtype),
            ir.Shape(tensor.shape.numpy()),
        )
        return made

    def numbers(self, *numbers: int) -> ir.Value:
        """A list for Reshape, Slice and the like."""
        return self.constant(np.array(numbers, np.int64))

    def scalar(self, number: float, like: ir.Value) -> ir.Value:
        """A number in the element type of another value."""
        kind = self.dtype(like)
        if not (kind.is_floating_point() or kind.is_integer()):
            raise Refused(f"its input {like.name} is of {kind.name}")
        return self.constant(np.array(number, kind.numpy()))

    def constant_float(self, number: float) -> ir.Value:
        return self.constant(np.array(number, np.float32))

    # ---- loops

    def loop(
        self, count: ir.Value, start: ir.Value, step: Callable[..., ir.Value]
    ) -> ir.Value:
        """What step(turn, value) makes of a value, so many times."""
        turn, go, value = (self.formal(x) for x in ("turn", "go", "value"))
        turn.type, turn.shape = ir.TensorType(ir.DataType.INT64), ir.Shape(())
        go.type, go.shape = ir.TensorType(ir.DataType.BOOL), ir.Shape(())
        body = self.body(
            [turn, go, value],
            lambda: [self.op("Identity", go), step(turn, value)],
        )
        return self.op("Loop", count, None, start, body=body)

    def scan(
        self, start: ir.Value, given: Sequence[ir.Value], step: Callable[..., Any]
    ) -> tuple[ir.Value, ir.Value]:
        """The last state, and results [turns, ...].

        step: of a state and one slice of each given value, to a state and a result.
        """
        names = ("state", *(f"slice{i}" for i in range(len(given))))
        inputs = [self.formal(name) for name in names]
        body = self.body(inputs, lambda: step(*inputs))
        made = self.ops(
            "Scan", start, *given, outputs=2, body=body, num_scan_inputs=len(given)
        )
        return made[0], made[1]

    def body(
        self, inputs: Sequence[ir.Value], make: Callable[[], Sequence[ir.Value]]
    ) -> ir.Graph:
        outside, self.made = self.made, []
        outputs = make()
        graph = ir.Graph(inputs, outputs, nodes=self.made, name="body")
        self.made = outside
        return graph

    def formal(self, name: str) -> ir.Value:
        """A value that a graph inside of the new nodes is given."""
        return ir.Value(name=self.value_names.take(f"{self.node.name}/{name}"))


def unknown(what: str, value: ir.Value) -> Refused:
    return Refused(
        f"the {what} of {value.name} is not known before it",
        "run ONNX's shape inference on the model and save what it finds",
    )
