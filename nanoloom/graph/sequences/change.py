"""A node of sequences or optionals, and the words for what comes in its place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from nanoloom.errors import DataDependent, ModelError, Unsupported
from nanoloom.graph.splice import discard, substitute
from nanoloom.graph.types import integer_sources
from nanoloom.graph.unique_names import Names

ELEMENTS = "nanoloom.elements"  # of a sequence: its tensors
STACKED = "nanoloom.stacked"  # of a sequence: its tensors behind each other, as one
OPSET = 13  # of the operators that take their place
Made = Sequence[ir.Value]


def elements_of(value: ir.Value | None) -> tuple[ir.Value, ...] | None:
    """The tensors of a sequence; None for what is none, or whose length is open."""
    return None if value is None else value.meta.get(ELEMENTS)


@dataclass
class Change:
    """last: the node behind which the next one comes."""

    graph: ir.Graph
    node: ir.Node
    names: Names
    last: ir.Node = field(init=False)

    def __post_init__(self) -> None:
        self.last = self.node

    @property
    def where(self) -> str:
        return f"node {self.node.name} ({self.node.op_type})"

    def invalid(self, reason: str) -> ModelError:
        return ModelError(reason, where=self.where)

    # ---- what comes in

    def input(self, index: int) -> ir.Value | None:
        return self.node.inputs[index] if index < len(self.node.inputs) else None

    def int(self, name: str, default: int) -> int:
        found = self.node.attributes.get(name)
        return default if found is None else found.as_int()

    def stacked(self) -> ir.Value | None:
        """The tensors of the sequence as one; None where they are known one by one."""
        value = self.input(0)
        return None if value is None else value.meta.get(STACKED)

    def elements(self) -> tuple[ir.Value, ...]:
        """Of the first input, which must be a sequence of known length."""
        value = self.input(0)
        found = elements_of(value)
        if found is None:
            name = "" if value is None else f" {value.name}"
            raise Unsupported(
                f"the length of the sequence{name} is not known while compiling",
                where=self.where,
                hint="give what makes it, a loop or a split, a constant number",
            )
        return found

    def known(self, index: int, what: str) -> np.ndarray | None:
        """The numbers of an input that must be a constant; None if it is left out."""
        value = self.input(index)
        if value is None:
            return None
        if value.const_value is None:
            raise DataDependent(
                f"{what} is not known while compiling",
                integer_sources([value]),
                where=self.where,
                hint="make it a constant of the model",
            )
        return value.const_value.numpy()

    def place(self, index: int, count: int, default: int, *, end: int = 0) -> int:
        """A place among so many, counted from the end where it is negative.

        end: 1 where the place behind the last one is one, too.
        """
        numbers = self.known(index, "a place in its sequence")
        place = default if numbers is None else int(numbers.reshape(-1)[0])
        if not -count <= place < count + end:
            raise self.invalid(f"place {place} of a sequence that has {count}")
        return place + count if place < 0 else place

    # ---- what is made

    def constant(self, numbers: object, dtype: type = np.int64) -> ir.Value:
        array = np.array(numbers, dtype)
        made = ir.Value(
            name=self.names.value(f"{self.node.name}/numbers"),
            shape=ir.Shape(array.shape),
            type=ir.TensorType(ir.DataType.from_numpy(array.dtype)),
            const_value=ir.Tensor(array),
        )
        self.graph.register_initializer(made)
        return made

    def op(self, op_type: str, inputs: Made, *, outputs: int = 1, **ints: int) -> Made:
        """The outputs of a node behind those that were made so far."""
        attributes = [ir.AttrInt64(name, number) for name, number in ints.items()]
        return self.put(op_type, inputs, attributes, outputs)

    def put(
        self, op_type: str, inputs: Made, attributes: Sequence[ir.Attr], outputs: int
    ) -> Made:
        name = self.names.node(f"{self.node.name}/{op_type}")
        made = ir.Node(
            "", op_type, inputs, attributes, num_outputs=outputs, version=OPSET,
            name=name,
        )  # fmt: skip
        for value in made.outputs:
            value.name = self.names.value(name)
        self.graph.insert_after(self.last, made)
        self.last = made
        return made.outputs

    def split(
        self, x: ir.Value, sizes: Sequence[int], axis: int, *, keeps: bool
    ) -> tuple[ir.Value, ...]:
        """Parts of a tensor; without the axis, where they are one place each."""
        if not sizes:
            return ()
        given = [x, self.constant(sizes)]
        parts = self.op("Split", given, outputs=len(sizes), axis=axis)
        if keeps:
            return tuple(parts)
        axes = self.constant([axis])
        return tuple(self.op("Squeeze", [part, axes])[0] for part in parts)

    def joined(self, values: Made, axis: int, *, new: bool) -> ir.Value:
        """Tensors as one, along an axis that they have or get."""
        if new:
            axes = self.constant([axis])
            values = [self.op("Unsqueeze", [value, axes])[0] for value in values]
        return self.op("Concat", values, axis=axis)[0]

    def give(self, *sequences: Made) -> None:
        """Put sequences of these tensors in the place of the node's outputs."""
        for old, tensors in zip(self.node.outputs, sequences, strict=False):
            note(old, ELEMENTS, tuple(tensors))
        discard(self.graph, self.node)

    def become(self, value: ir.Value) -> None:
        """Put a tensor in the place of the node's output."""
        substitute(self.graph, self.node, [value])


def note(old: ir.Value, key: str, what: object) -> ir.Value:
    """Put a value that nothing computes in the place of a sequence, with what it is."""
    new = ir.Value(name=old.name, type=old.type)
    new.meta[key] = what
    ir.convenience.replace_all_uses_with(old, new, replace_graph_outputs=True)
    old.name = None
    return new
