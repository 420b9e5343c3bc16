"""ONNX functions expanded into their bodies."""

from __future__ import annotations

from collections.abc import Mapping

import onnx
import onnx_ir as ir

from nanoloom.graph.splice import inline_graph, substitute
from nanoloom.graph.types import type_proto
from nanoloom.graph.unique_names import Names, nested, rename


def expand(
    graph: ir.Graph, node: ir.Node, opsets: dict[str, int], names: Names
) -> bool:
    """Replace a node by the function body that ONNX defines for it, if there is one.

    The new nodes keep the old one's name as a prefix, so that messages and reports
    still name the model's own layer.
    """
    version = node.version or opsets.get(node.domain, 1)
    if not onnx.defs.has(node.op_type, version, node.domain):
        return False
    schema = onnx.defs.get_schema(node.op_type, version, node.domain)
    proto = function_of(schema, node, version)
    if proto is None:
        return False
    given_outputs = list(proto.output)
    made_outputs = set(proto.input).union(*(inner.output for inner in proto.node))
    del proto.output[:]  # a body that depends on its context may leave some out
    proto.output.extend(name for name in given_outputs if name in made_outputs)
    function = ir.serde.deserialize_function(proto)
    attributes = dict(node.attributes)
    for attribute in schema.attributes.values():
        if attribute.name not in attributes and attribute.default_value.name:
            default = ir.serde.deserialize_attribute(attribute.default_value)
            attributes[attribute.name] = default
    versions = {o.domain: o.version for o in proto.opset_import}
    for inner in nested(list(function)):
        resolve(inner, attributes)
        inner.version = versions.get(inner.domain, inner.version)
    body = function.graph
    rename(body, names, f"{node.name}/")
    given = [*node.inputs, *[None] * len(body.inputs)][: len(body.inputs)]
    found = dict(zip(proto.output, inline_graph(body, given, graph, node), strict=True))
    substitute(graph, node, [found.get(name) for name in given_outputs])
    return True


def resolve(node: ir.Node, attributes: Mapping[str, ir.Attr]) -> None:
    """Put the caller's attributes where a body refers to them; drop what has none."""
    for name, attribute in list(node.attributes.items()):
        if not attribute.is_ref():
            continue
        given = attributes.get(attribute.ref_attr_name or "")
        del node.attributes[name]
        if given is not None:
            node.attributes[name] = ir.Attr(name, given.type, given.value)


def function_of(
    schema: onnx.defs.OpSchema, node: ir.Node, version: int
) -> onnx.FunctionProto | None:
    """The body as ONNX states it for this opset and these input types."""
    if schema.has_function:
        versions = [v for v in schema.function_opset_versions if v <= version]
        if not versions:
            return None
        text = schema.get_function_with_opset_version(max(versions))
        if text is None:
            return None
        return text if isinstance(text, onnx.FunctionProto) else parse(text)
    if schema.has_context_dependent_function:
        versions = [
            v for v in schema.context_dependent_function_opset_versions if v <= version
        ]
        types = [b"" if x is None else serialized(x) for x in node.inputs]
        if not versions:
            return None
        proto = ir.serde.serialize_node(node)
        text = schema.get_context_dependent_function_with_opset_version(
            max(versions), proto.SerializeToString(), types
        )
        return parse(text) if text else None
    return None


def serialized(value: ir.Value) -> bytes:
    proto = type_proto(value)
    return b"" if proto is None else proto.SerializeToString()


def parse(text: bytes) -> onnx.FunctionProto:
    proto = onnx.FunctionProto()
    proto.ParseFromString(text)
    return proto
