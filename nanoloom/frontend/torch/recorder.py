"""What onnxscript's functions call, written as nodes instead of computed.

Imported when an operator is asked of onnxscript, which is an extra.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import onnx
import onnx_ir as ir
from onnxscript import evaluator

from nanoloom.frontend.torch.writer import OPSET, Writer


class Recorder(evaluator.Evaluator):
    """Nodes instead of results.  Nothing is written before all went well."""

    def __init__(self, writer: Writer) -> None:
        self.writer, self.nodes = writer, list[ir.Node]()

    def commit(self) -> None:
        for node in self.nodes:
            self.writer.add(node)

    def eval_op(self, op: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        return self.eval(op.op_schema, args, kwargs)

    def eval(self, schema: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        inputs, attributes = parted(schema, args, kwargs)
        types = bound_types(schema, inputs)
        pairs = typed_inputs(schema, inputs)
        flat = [value_of(x, types.get(kind), self.writer) for x, kind in pairs]
        while flat and flat[-1] is None:
            flat.pop()
        node = ir.node(
            schema.name, flat, attributes=attributes,
            num_outputs=output_count(schema, attributes),
        )  # fmt: skip
        for value, formal in zip(node.outputs, schema.outputs, strict=False):
            if (dtype := output_type(formal, types, attributes)) is not None:
                value.dtype = dtype
        self.nodes.append(node)
        return node.outputs[0] if len(node.outputs) == 1 else tuple(node.outputs)

    def __getattr__(self, name: str) -> Any:
        """Arithmetic that a function writes with signs: Add, Sub, Mul, Div, Neg."""
        if name.startswith("_"):
            raise AttributeError(name)
        schema = onnx.defs.get_schema(name, OPSET)
        return lambda *args: self.eval(schema, args, {})

    def eval_function(
        self, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        """Functions are traced: they are Python that calls operators."""
        return function.function(*args, **kwargs)


def parted(
    schema: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Inputs in order, and attributes; what is given by name may be either."""
    names = [x.name for x in schema.inputs]
    inputs = list(args)
    attributes = {n: x for n, x in kwargs.items() if n not in names and x is not None}
    for place, name in enumerate(names):
        if name in kwargs:
            inputs += [None] * (place + 1 - len(inputs))
            inputs[place] = kwargs[name]
    return inputs, attributes


def typed_inputs(schema: Any, inputs: Sequence[Any]) -> list[tuple[Any, str]]:
    """Each input with the type or the variable of types that the schema has for it."""
    formals = list(schema.inputs)
    found: list[tuple[Any, str]] = []
    for place, given in enumerate(inputs):
        formal = formals[min(place, len(formals) - 1)]
        found.append((given, formal.type_str))
    return found


def bound_types(schema: Any, inputs: Sequence[Any]) -> dict[str, ir.DataType | None]:
    """The element types of variables, as values have them; of types, themselves."""
    found: dict[str, ir.DataType | None] = {}
    for given, kind in typed_inputs(schema, inputs):
        if isinstance(given, ir.Value) and given.dtype is not None:
            found.setdefault(kind, given.dtype)
        elif kind.startswith("tensor("):
            found.setdefault(kind, type_named(kind))
    return found


def type_named(text: str) -> ir.DataType | None:
    """tensor(int64)."""
    name = text.removeprefix("tensor(").removesuffix(")").upper()
    return getattr(ir.DataType, name, None)


def output_type(
    formal: Any, types: Mapping[str, ir.DataType | None], attributes: Mapping[str, Any]
) -> ir.DataType | None:
    if formal.type_str.startswith("tensor("):
        return type_named(formal.type_str)
    if formal.type_str in types:
        return types[formal.type_str]
    said = attributes.get("to", attributes.get("dtype"))
    return ir.DataType(said) if isinstance(said, int) and said > 0 else None


def output_count(schema: Any, attributes: Mapping[str, Any]) -> int:
    if schema.name == "Split":
        return int(attributes["num_outputs"])
    if schema.name == "BatchNormalization":
        return 1
    return len(schema.outputs)


def value_of(given: Any, dtype: ir.DataType | None, writer: Writer) -> Any:
    """A value; numbers in the type of the other operands, of their own without one."""
    if given is None or isinstance(given, ir.Value):
        return given
    if isinstance(given, list | tuple) and any(isinstance(x, ir.Value) for x in given):
        return writer.ints(list(given))
    if isinstance(given, ir.TensorProtocol):
        return writer.constant(given.numpy(), given.dtype)
    return writer.constant(given, dtype or own_type(given))


def own_type(given: Any) -> ir.DataType:
    """Of a number of Python's, or of the first of some."""
    first = given[0] if isinstance(given, list | tuple) and given else given
    if isinstance(first, bool):
        return ir.DataType.BOOL
    return ir.DataType.FLOAT if isinstance(first, float) else ir.DataType.INT64
