"""Other operators, as onnxscript's registry of torch's operators writes them."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import onnx_ir as ir
import torch  # pyright: ignore[reportMissingImports]
from torch import fx  # pyright: ignore[reportMissingImports]

from nanoloom.errors import Unsupported
from nanoloom.frontend.torch.call import Call
from nanoloom.frontend.torch.element_types import ELEMENT_TYPES
from nanoloom.frontend.torch.given import INSTALL
from nanoloom.frontend.torch.writer import Writer

if TYPE_CHECKING:
    from nanoloom.frontend.torch.graph import GraphImporter


@cache
def registry() -> Mapping[str, Any]:
    """onnxscript's functions by the names of torch's overloads."""
    try:
        from onnxscript.function_libs.torch_lib import (  # pyright: ignore[reportMissingImports]
            ops,  # noqa: F401 - fills the registry
            registration,
        )
    except ImportError:
        reason = "is asked of onnxscript, which is not installed"
        raise Unsupported(reason, hint=INSTALL) from None
    found = registration.default_registry
    return {name: f.overloads[0] for name, f in found.items() if f.overloads}


def from_torchlib(call: Call, importer: GraphImporter) -> Any:
    """The values of a node; None where the registry has not its operator."""
    target: Any = call.node.target
    if not isinstance(target, torch._ops.OpOverload):
        return None
    function = registry().get(target.name())
    if function is None:
        return None
    from onnxscript import evaluator  # pyright: ignore[reportMissingImports]

    recorder = recorder_class()(importer.writer)
    args = [argument(x, call) for x in call.node.args]
    kwargs = {name: argument(x, call) for name, x in call.node.kwargs.items()}
    kwargs = {n: -1 if n == "dtype" and x is None else x for n, x in kwargs.items()}
    logging.getLogger("onnxscript").setLevel(logging.ERROR)
    try:
        with evaluator.default_as(recorder):
            made = function(*args, **kwargs)
    except Unsupported:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a function of others raises
        told = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
        raise call.refuse(f"onnxscript does not write it: {told}") from None
    recorder.commit()
    return made


def argument(given: Any, call: Call) -> Any:
    if isinstance(given, fx.Node):
        return call.values[given]
    if isinstance(given, list | tuple):
        return [argument(x, call) for x in given]
    if isinstance(given, torch.dtype):
        return int(ELEMENT_TYPES.get(given, -1))
    if isinstance(given, torch.device | torch.memory_format | torch.layout):
        return str(given)
    return given


@cache
def recorder_class() -> type:
    from onnxscript import evaluator  # pyright: ignore[reportMissingImports]

    class Recorder(evaluator.Evaluator):
        """Nodes instead of results.  Nothing is written before all went well."""

        def __init__(self, writer: Writer) -> None:
            self.writer, self.nodes = writer, list[ir.Node]()

        def commit(self) -> None:
            for node in self.nodes:
                self.writer.add(node)

        def eval_op(
            self, op: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
        ) -> Any:
            return self.eval(op.op_schema, args, kwargs)

        def eval(
            self, schema: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
        ) -> Any:
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
                value.dtype = output_type(formal, types, attributes)
            self.nodes.append(node)
            return node.outputs[0] if len(node.outputs) == 1 else tuple(node.outputs)

        def eval_function(
            self, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
        ) -> Any:
            """Functions are traced: they are Python that calls operators."""
            return function.function(*args, **kwargs)

    return Recorder


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
    if dtype is None:
        first = given[0] if isinstance(given, list | tuple) and given else given
        kinds = {bool: ir.DataType.BOOL, float: ir.DataType.FLOAT}
        dtype = kinds.get(type(first), ir.DataType.INT64)
    return writer.constant(given, dtype)
