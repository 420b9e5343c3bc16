"""The types that a model declares for its values."""

from __future__ import annotations

from collections.abc import Iterator

import onnx
import onnx_ir as ir

from nanoloom.errors import ModelError, Unsupported
from nanoloom.frontend.proto_walk import bodies, walk

AGAIN = "export the model again"
ELEMENT_TYPES = {member.value for member in ir.DataType} - {ir.DataType.UNDEFINED}
MOST_DIMENSIONS = 32  # numpy has 64, no exporter comes near
Typed = Iterator[tuple[onnx.ValueInfoProto, str]]


def check_types(model: onnx.ModelProto, where: str) -> None:
    """Inputs have types, element types exist.

    Raises ModelError naming the value.
    """
    for value in model.graph.input:
        if value.type.WhichOneof("value") is None:
            raise ModelError(f"input {value.name} has no type", where=where, hint=AGAIN)
    for value, at in declared(model, where):
        if value.type.WhichOneof("value") is not None:
            check_type(value.type, f"{at}: value {value.name}")


def forget_negative(model: onnx.ModelProto) -> None:
    """Dimensions of -1 and less, as some exporters write those that may vary."""
    for value, _ in declared(model, ""):
        for dim in dimensions(value.type):
            if dim.HasField("dim_value") and dim.dim_value < 0:
                dim.ClearField("dim_value")


def dimensions(kind: onnx.TypeProto) -> Iterator[onnx.TensorShapeProto.Dimension]:
    """Of a tensor, or of the tensors of a sequence or an optional."""
    match kind.WhichOneof("value"):
        case "tensor_type":
            yield from kind.tensor_type.shape.dim
        case "sequence_type":
            yield from dimensions(kind.sequence_type.elem_type)
        case "optional_type":
            yield from dimensions(kind.optional_type.elem_type)
        case _:
            return


def declared(model: onnx.ModelProto, where: str) -> Typed:
    yield from of_graph(model.graph, where)
    lists = [model.graph.node, *(f.node for f in model.functions)]
    for nodes in lists:
        for node, at in walk(nodes, where):
            for body in bodies(node):
                yield from of_graph(body, at)
    for function in model.functions:
        for value in function.value_info:
            yield value, f"{where}: function {function.name}"


def of_graph(graph: onnx.GraphProto, where: str) -> Typed:
    for values in (graph.input, graph.output, graph.value_info):
        for value in values:
            yield value, where


def check_type(kind: onnx.TypeProto, where: str) -> None:
    match kind.WhichOneof("value"):
        case "tensor_type":
            check_tensor_type(kind.tensor_type, where)
        case "sequence_type":
            check_type(kind.sequence_type.elem_type, where)
        case "optional_type":
            check_type(kind.optional_type.elem_type, where)
        case None:
            raise ModelError("has a type of nothing", where=where, hint=AGAIN)
        case other:
            raise Unsupported(
                f"has the type {other.removesuffix('_type').replace('_', ' ')}",
                where=where,
                hint="export the model with tensors there",
            )


def check_tensor_type(kind: onnx.TypeProto.Tensor, where: str) -> None:
    if kind.elem_type not in ELEMENT_TYPES:
        raise ModelError(
            f"has no element type that ONNX knows (number {kind.elem_type})",
            where=where,
            hint=AGAIN,
        )
    if len(kind.shape.dim) > MOST_DIMENSIONS:
        raise ModelError(
            f"has {len(kind.shape.dim)} dimensions", where=where, hint=AGAIN
        )
