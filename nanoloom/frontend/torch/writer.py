"""ONNX nodes, written one after the other: what operators are imported with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

OPSET = 23  # the first with RMSNormalization and Attention
IR_VERSION = 11
NEWER = {"CumProd": 26}  # the opset that an operator begins with
INT64 = ir.DataType.INT64
COMPARISONS = frozenset(
    ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "IsNaN", "IsInf")
)


class Writer:
    """A graph that grows.  Constants of equal bytes are one initializer.

    graph: that nodes go to, which may lie in a node of `root`, where weights are.
    """

    def __init__(self, name: str) -> None:
        self.graph = ir.Graph([], [], nodes=[], name=name, opset_imports={"": OPSET})
        self.root = self.graph
        self.place = ""  # the node that is imported: part of the names
        self._names: dict[str, int] = {}
        self._constants: dict[tuple[str, tuple[int, ...], bytes], ir.Value] = {}

    def name(self, wanted: str) -> str:
        """The name itself; with a number behind it where it is taken."""
        count = self._names.get(wanted, 0)
        self._names[wanted] = count + 1
        return self.name(f"{wanted}.{count}") if count else wanted

    def __call__(
        self, op: str, *inputs: ir.Value | None, count: int = 1, domain: str = "",
        **attributes: Any,
    ) -> Any:  # fmt: skip
        """One node; its output, or a tuple of `count` ones.

        The outputs have the types of `types_of`, until who knows better says otherwise.
        """
        given = list(inputs)
        while given and given[-1] is None:
            given.pop()
        node = ir.node(
            op, given, attributes=attributes, num_outputs=count, name=self._node(op),
            domain=domain,
        )  # fmt: skip
        if domain:
            self.root.opset_imports[domain] = 1
        elif op in NEWER:
            self.root.opset_imports[""] = NEWER[op]
        for value, dtype in zip(node.outputs, types_of(node), strict=True):
            value.name = self.name(self.place or op)
            value.dtype = dtype
        self.graph.append(node)
        return node.outputs[0] if count == 1 else tuple(node.outputs)

    def _node(self, op: str) -> str:
        return self.name(f"{self.place}/{op}" if self.place else f"/{op}")

    def add(self, node: ir.Node) -> None:
        """A node that somebody else made."""
        node.name = self._node(node.op_type)
        for value in node.outputs:
            value.name = self.name(self.place)
        self.graph.append(node)

    def constant(self, value: object, dtype: ir.DataType = INT64) -> ir.Value:
        """A small array as a value."""
        with np.errstate(all="ignore"):  # -inf in bf16, 1e-20 in f16
            array = np.asarray(value, order="C").astype(dtype.numpy())
        key = (dtype.name, array.shape, array.tobytes())
        if key not in self._constants:
            tensor = ir.Tensor(array, dtype=dtype)
            self._constants[key] = self.weight(
                tensor, f"constant.{len(self._constants)}"
            )
        return self._constants[key]

    def weight(self, tensor: ir.TensorProtocol, name: str) -> ir.Value:
        called = self.name(name)
        tensor.name = called
        shape = ir.Shape(tensor.shape.numpy())
        kind = ir.TensorType(tensor.dtype)
        value = ir.Value(name=called, shape=shape, type=kind, const_value=tensor)
        self.root.register_initializer(value)
        return value

    def input(
        self, name: str, dtype: ir.DataType, shape: Sequence[int | str]
    ) -> ir.Value:
        value = ir.Value(
            name=self.name(name), shape=ir.Shape(shape), type=ir.TensorType(dtype)
        )
        self.graph.inputs.append(value)
        return value

    # ---- what most operators need

    def cast(self, value: ir.Value, dtype: ir.DataType) -> ir.Value:
        if value.dtype == dtype:
            return value
        made = self("Cast", value, to=int(dtype))
        made.dtype = dtype
        return made

    def typed(
        self, dtype: ir.DataType, op: str, *inputs: ir.Value | None, **attributes: Any
    ) -> ir.Value:
        """A node whose output has a type that its first input does not have."""
        made = self(op, *inputs, **attributes)
        made.dtype = dtype
        return made

    def ints(self, numbers: Sequence[int | ir.Value]) -> ir.Value:
        """A vector of int64, of numbers and of 0-d values."""
        if all(isinstance(n, int) for n in numbers):
            return self.constant(np.array(numbers, np.int64))
        parts: list[ir.Value] = []
        known: list[int] = []
        for number in [*numbers, None]:
            if isinstance(number, int):
                known.append(number)
                continue
            if known:
                parts.append(self.constant(np.array(known, np.int64)))
                known = []
            if number is not None:
                parts.append(self.typed(INT64, "Reshape", number, self.constant([1])))
        return parts[0] if len(parts) == 1 else self("Concat", *parts, axis=0)

    def reshape(self, value: ir.Value, shape: Sequence[int | ir.Value]) -> ir.Value:
        return self("Reshape", value, self.ints(shape), allowzero=1)

    def scalar(self, value: ir.Value) -> ir.Value:
        """The only element of a tensor as a 0-d one."""
        return self("Reshape", value, self.constant(np.empty(0, np.int64)))


def types_of(node: ir.Node) -> list[ir.DataType | None]:
    """Element types of the outputs: those of a body's, bool of comparisons, else that
    of the first input that is no condition."""
    if (body := node.attributes.get("body")) is not None:
        ends = body.as_graph().outputs  # of a Loop, whether it goes on is in front
        return [x.dtype for x in ends][node.op_type == "Loop" :]
    inputs = node.inputs[node.op_type == "Where" :]
    first = next((x for x in inputs if x is not None), None)
    dtype = None if first is None else first.dtype
    made = ir.DataType.BOOL if node.op_type in COMPARISONS else dtype
    return [made] * len(node.outputs)
