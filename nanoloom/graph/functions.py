"""ONNX functions expanded into their bodies, and branches that are known now."""

from __future__ import annotations

import onnx
import onnx_ir as ir

from nanoloom.graph.types import type_proto


def expand(graph: ir.Graph, node: ir.Node, opsets: dict[str, int]) -> bool:
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
    function = ir.serde.deserialize_function(proto)
    versions = {o.domain: o.version for o in proto.opset_import}
    values: dict[ir.Value, ir.Value | None] = {}
    for i, formal in enumerate(function.inputs):
        values[formal] = node.inputs[i] if i < len(node.inputs) else None
    defaults = {a.name: a for a in schema.attributes.values()}
    made = [
        copy(inner, node, values, versions, defaults) for inner in function
    ]
    graph.insert_after(node, made)
    for old, formal in zip(node.outputs, function.outputs, strict=False):
        new = values[formal]
        assert new is not None
        if old.type is not None:
            new.type = old.type
        if old.shape is not None:
            new.shape = old.shape
        ir.convenience.replace_all_uses_with(old, new, replace_graph_outputs=True)
        new.name, old.name = old.name, None
    graph.remove(node, safe=True)
    return True


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


def copy(
    inner: ir.Node,
    caller: ir.Node,
    values: dict[ir.Value, ir.Value | None],
    versions: dict[str, int],
    defaults: dict[str, onnx.defs.OpSchema.Attribute],
) -> ir.Node:
    """One node of a body with the caller's values and attributes in place."""
    attributes: list[ir.Attr] = []
    for attribute in inner.attributes.values():
        if not attribute.is_ref():
            attributes.append(attribute)
            continue
        given = caller.attributes.get(attribute.ref_attr_name)  # type: ignore[arg-type]
        if given is None:
            default = defaults[attribute.ref_attr_name].default_value  # type: ignore[index]
            if not default.name:
                continue
            given = ir.serde.deserialize_attribute(default)
        attributes.append(ir.Attr(attribute.name, given.type, given.value))
    made = ir.Node(
        inner.domain,
        inner.op_type,
        [None if x is None else values.get(x, x) for x in inner.inputs],
        attributes,
        num_outputs=len(inner.outputs),
        version=versions.get(inner.domain, inner.version),
        name=f"{caller.name}/{inner.name or inner.op_type}",
    )
    for old, new in zip(inner.outputs, made.outputs, strict=True):
        new.name = f"{caller.name}/{old.name}" if old.name else None
        values[old] = new
    return made


def inline_branch(graph: ir.Graph, node: ir.Node) -> None:
    """Replace an If whose condition is a constant by the branch it takes."""
    condition = node.inputs[0]
    assert condition is not None and condition.const_value is not None
    taken = bool(condition.const_value.numpy().reshape(-1)[0])
    body = node.attributes["then_branch" if taken else "else_branch"].as_graph()
    nodes = list(body)
    body.remove(nodes)
    for value in list(body.initializers.values()):
        body.initializers.pop(value.name)  # type: ignore[arg-type]
        graph.register_initializer(value)
    graph.insert_after(node, nodes)
    for old, new in zip(node.outputs, body.outputs, strict=True):
        ir.convenience.replace_all_uses_with(old, new, replace_graph_outputs=True)
    body.outputs.clear()
    graph.remove(node, safe=True)
