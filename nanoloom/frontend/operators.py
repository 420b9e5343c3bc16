"""Nodes against the schemas of their operators: attributes and number of values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache

import onnx
import onnx_ir as ir
from onnx.defs import OpSchema

from nanoloom.errors import ModelError, Unsupported
from nanoloom.frontend.proto_walk import (
    FunctionId,
    callee,
    function_id,
    normal,
    walk,
)

Attribute = onnx.AttributeProto
Kind = Attribute.AttributeType
INVALID = "the exporter wrote an invalid model; export it again or report it there"

# The field of AttributeProto that holds the value of each type.
VALUE_FIELDS = {
    Kind.FLOAT: "f",
    Kind.INT: "i",
    Kind.STRING: "s",
    Kind.TENSOR: "t",
    Kind.GRAPH: "g",
    Kind.TYPE_PROTO: "tp",
    Kind.FLOATS: "floats",
    Kind.INTS: "ints",
    Kind.STRINGS: "strings",
    Kind.TENSORS: "tensors",
    Kind.GRAPHS: "graphs",
    Kind.TYPE_PROTOS: "type_protos",
    Kind.SPARSE_TENSOR: "sparse_tensor",
    Kind.SPARSE_TENSORS: "sparse_tensors",
}
SINGLE = {"f", "i", "s", "t", "g", "tp", "sparse_tensor"}
NEVER_OMITTED = {"t", "g", "tp"}  # some writers omit a number or string that is zero
SPARSE = {Kind.SPARSE_TENSOR, Kind.SPARSE_TENSORS}


@cache
def schema_of(domain: str, op_type: str, version: int) -> OpSchema | None:
    """The schema that an operator has in a version of its domain; None if unknown."""
    if not onnx.defs.has(op_type, version, domain):
        return None
    return onnx.defs.get_schema(op_type, version, domain)


def check_operators(model: onnx.ModelProto, where: str) -> None:
    """Check every node; operators that ONNX does not know are left to `problems`.

    Raises ModelError for attributes of a wrong type or too few or many values.
    """
    functions = {function_id(f): f for f in model.functions}
    check_list(model.graph.node, model.opset_import, functions, where, frozenset())
    for function in model.functions:
        parameters = {*function.attribute, *(a.name for a in function.attribute_proto)}
        inside = f"{where}: function {function.name}"
        for attribute in function.attribute_proto:
            check_value(attribute, inside)
            check_no_graph(attribute, inside)
        check_list(function.node, function.opset_import, functions, inside, parameters)


def check_list(
    nodes: Iterable[onnx.NodeProto],
    imports: Iterable[onnx.OperatorSetIdProto],
    functions: Mapping[FunctionId, onnx.FunctionProto],
    where: str,
    parameters: frozenset[str] | set[str],
) -> None:
    opsets = {entry.domain: entry.version for entry in imports}
    for node, at in walk(list(nodes), where):
        check_attributes(node, parameters, at)
        function = functions.get(callee(node))
        domain = normal(node.domain)
        if function is not None:
            check_call(node, function, at)
        elif domain in opsets:
            schema = schema_of(domain, node.op_type, opsets[domain])
            if schema is not None:
                check_schema(node, schema, at)
        elif domain == "":
            raise ModelError("its operator set is not imported", where=at, hint=INVALID)


def check_attributes(
    node: onnx.NodeProto, parameters: frozenset[str] | set[str], where: str
) -> None:
    """Names and values by themselves.  parameters: of the function around the node."""
    seen: set[str] = set()
    for attribute in node.attribute:
        if not attribute.name or attribute.name in seen:
            what = "is given twice" if attribute.name else "has no name"
            raise invalid(f"attribute {attribute.name} {what}", where)
        seen.add(attribute.name)
        if attribute.ref_attr_name:
            if attribute.ref_attr_name not in parameters:
                raise invalid(
                    f"attribute {attribute.name} stands for {attribute.ref_attr_name},"
                    " which is no parameter of a function around it",
                    where,
                )
            continue
        check_value(attribute, where)


def check_value(attribute: onnx.AttributeProto, where: str) -> None:
    """The declared type of an attribute is the type of the value it holds."""
    field = VALUE_FIELDS.get(attribute.type)
    if field is None:
        raise invalid(f"attribute {attribute.name} has no type", where)
    if attribute.type in SPARSE:
        raise Unsupported(
            f"attribute {attribute.name} is a sparse tensor",
            where=where,
            hint="export the model with dense weights",
        )
    for kind, other in VALUE_FIELDS.items():
        has = (
            attribute.HasField(other)
            if other in SINGLE
            else len(getattr(attribute, other)) > 0
        )
        if has != (other == field) and (has or other in NEVER_OMITTED):
            is_other = f"holds {type_name(kind)}" if has else "holds nothing"
            raise invalid(
                f"attribute {attribute.name} is declared as"
                f" {type_name(attribute.type)} and {is_other}",
                where,
            )


def check_text(attribute: onnx.AttributeProto, where: str) -> None:
    for content in (attribute.s, *attribute.strings):
        try:
            content.decode()
        except UnicodeDecodeError:
            reason = f"attribute {attribute.name} is no text in UTF-8"
            raise invalid(reason, where) from None


def check_schema(node: onnx.NodeProto, schema: OpSchema, where: str) -> None:
    for attribute in node.attribute:
        known = schema.attributes.get(attribute.name)
        if known is None:
            # Names with an underscore are an exporter's own notes.
            if attribute.name.startswith("_"):
                continue
            names = ", ".join(sorted(schema.attributes)) or "none"
            raise invalid(
                f"has no attribute {attribute.name} in this opset (it has: {names})",
                where,
            )
        if attribute.type != known.type.value:
            raise invalid(
                f"attribute {attribute.name} must be {type_name(known.type.value)},"
                f" it is {type_name(attribute.type)}",
                where,
            )
        check_text(attribute, where)
    given = {attribute.name for attribute in node.attribute}
    for name, known in schema.attributes.items():
        if known.required and name not in given:
            raise invalid(f"lacks the attribute {name}", where)
    check_count("inputs", len(node.input), schema.min_input, schema.max_input, where)
    check_count(
        "outputs", len(node.output), schema.min_output, schema.max_output, where
    )
    for formal, name in zip(schema.inputs, node.input, strict=False):
        if not name and formal.option == OpSchema.FormalParameterOption.Single:
            raise invalid(f"input {formal.name} must be given", where)


def check_count(what: str, count: int, least: int, most: int, where: str) -> None:
    if not least <= count <= most:
        wanted = str(least) if least == most else f"{least} to {most}"
        if most >= 2**31 - 1:
            wanted = f"at least {least}"
        raise invalid(f"has {count} {what}, it takes {wanted}", where)


def check_required(model: ir.Model, where: str) -> None:
    """After inlining: no function was called without an input that its body needs."""
    for node in model.graph.all_nodes():
        version = node.version or model.opset_imports.get(node.domain)
        schema = schema_of(node.domain, node.op_type, version) if version else None
        if schema is None or None not in node.inputs:
            continue
        for formal, value in zip(schema.inputs, node.inputs, strict=False):
            if value is None and formal.option == OpSchema.FormalParameterOption.Single:
                at = f"{where}: node {node.name} ({node.op_type})"
                raise invalid(f"input {formal.name} must be given", at)


def check_call(node: onnx.NodeProto, function: onnx.FunctionProto, where: str) -> None:
    check_count("inputs", len(node.input), 0, len(function.input), where)
    check_count("outputs", len(node.output), 0, len(function.output), where)
    for attribute in node.attribute:
        check_no_graph(attribute, where)


def check_no_graph(attribute: onnx.AttributeProto, where: str) -> None:
    """A graph handed to a function would need values of the caller."""
    if attribute.type in (Kind.GRAPH, Kind.GRAPHS):
        raise Unsupported(
            f"hands the graph {attribute.name} to a function of the model",
            where=where,
            hint="export the model without functions",
        )


def type_name(kind: int) -> str:
    return Kind.Name(kind) if kind in Kind.values() else f"type {kind}"


def invalid(reason: str, where: str) -> ModelError:
    return ModelError(reason, where=where, hint=INVALID)
