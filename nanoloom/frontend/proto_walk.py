"""Walking the protos of a model: nodes, the graphs inside them, all tensors."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import onnx
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from nanoloom.errors import ModelError

STRING, MESSAGE = FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_MESSAGE
FREE_TEXT = {"doc_string", "value"}  # of metadata: stack traces, for example
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
FunctionId = tuple[str, str, str]


class Place(NamedTuple):
    """A node and the words that name it in a message."""

    node: onnx.NodeProto
    where: str


def label(node: onnx.NodeProto, index: int, parent: str = "") -> str:
    """A node's name; one without is called Add_17 after its place in the list."""
    name = node.name or f"{node.op_type}_{index}"
    return f"{parent}/{name}" if parent and not node.name else name


def place(where: str, node: onnx.NodeProto, name: str) -> str:
    return f"{where}: node {name} ({node.op_type})"


def bodies(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """The graphs in a node's attributes: branches, loop bodies."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def walk(
    nodes: Sequence[onnx.NodeProto], where: str, parent: str = ""
) -> Iterator[Place]:
    """All nodes, those of inner graphs after the node that holds them."""
    for index, node in enumerate(nodes):
        name = label(node, index, parent)
        yield Place(node, place(where, node, name))
        for body in bodies(node):
            yield from walk(body.node, where, name)


def function_id(function: onnx.FunctionProto) -> FunctionId:
    return normal(function.domain), function.name, function.overload


def callee(node: onnx.NodeProto) -> FunctionId:
    """The function that a node calls, if the model has one of this name."""
    return normal(node.domain), node.op_type, node.overload


def normal(domain: str) -> str:
    """ONNX's own domain has two spellings."""
    return "" if domain == "ai.onnx" else domain


def tensors(
    model: onnx.ModelProto, where: str
) -> Iterator[tuple[onnx.TensorProto, str]]:
    """Every tensor of a model with the words that name it in a message."""
    yield from initializers(model.graph, where)
    lists = [model.graph.node, *(f.node for f in model.functions)]
    for nodes in lists:
        for node, at in walk(nodes, where):
            yield from attribute_tensors(node.attribute, at)
            for body in bodies(node):
                yield from initializers(body, at)
    for function in model.functions:
        at = f"{where}: function {function.name}"
        yield from attribute_tensors(function.attribute_proto, at)


def initializers(
    graph: onnx.GraphProto, where: str
) -> Iterator[tuple[onnx.TensorProto, str]]:
    for tensor in graph.initializer:
        yield tensor, f"{where}: weight {tensor.name}"


def attribute_tensors(
    attributes: Iterable[onnx.AttributeProto], where: str
) -> Iterator[tuple[onnx.TensorProto, str]]:
    for attribute in attributes:
        if attribute.HasField("t"):
            yield attribute.t, f"{where}, attribute {attribute.name}"
        for tensor in attribute.tensors:
            yield tensor, f"{where}, attribute {attribute.name}"


def drop_devices(model: onnx.ModelProto, where: str) -> None:
    """Forget how a model was split over machines; it is compiled for one."""
    del model.configuration[:]
    for nodes in (model.graph.node, *(f.node for f in model.functions)):
        for node, _ in walk(nodes, where):
            del node.device_configurations[:]


def check_text(message: Message, where: str) -> None:
    """Refuse names that are not UTF-8 (protobuf hands out bytes) or no line of text."""
    values: Any
    for descriptor, values in message.ListFields():
        if descriptor.type == STRING:
            for text in values if descriptor.is_repeated else (values,):
                check_name(text, descriptor.name, where)
        elif descriptor.type == MESSAGE:
            for inner in values if descriptor.is_repeated else (values,):
                check_text(inner, where)


def check_name(text: str | bytes, field: str, where: str) -> None:
    if isinstance(text, str) and (field in FREE_TEXT or not CONTROL.search(text)):
        return
    fault = "not UTF-8" if isinstance(text, bytes) else f"{text[:40]!r}"
    raise ModelError(
        f"the file is damaged: a {field} in it is {fault}",
        where=where,
        hint="fetch or export it again",
    )
