"""Shapes of one node's outputs, through ONNX's own inference, with known inputs' data."""

from __future__ import annotations

import onnx
import onnx_ir as ir
from onnx import shape_inference

from nanoloom.errors import ModelError
from nanoloom.graph.types import is_static, set_type, shape_of, type_proto

DATA_LIMIT = 4096  # elements of a constant that inference may want to see


def infer(node: ir.Node, opsets: dict[str, int]) -> None:
    """Give the outputs their element types and shapes, as far as ONNX can tell."""
    version = node.version or opsets.get(node.domain, 1)
    if not onnx.defs.has(node.op_type, version, node.domain):
        return
    schema = onnx.defs.get_schema(node.op_type, version, node.domain)
    values = {x.name: x for x in captured(node) if x.name}
    types = {
        name: proto for name, x in values.items() if (proto := type_proto(x)) is not None
    }
    data = {name: small for name, x in values.items() if (small := data_of(x))}
    imports = [onnx.helper.make_opsetid(d, v) for d, v in {**opsets, node.domain: version}.items()]
    try:
        found = shape_inference.infer_node_outputs(
            schema, bare(node), types, data, opset_imports=imports
        )
    except (shape_inference.InferenceError, RuntimeError, KeyError) as error:
        reason = str(error).strip().splitlines()[-1]
        raise ModelError(
            f"its inputs do not fit together: {reason}",
            where=f"node {node.name} ({node.op_type})",
        ) from None
    for value in node.outputs:
        if value.name in found:
            set_type(value, found[value.name])


def captured(node: ir.Node) -> list[ir.Value]:
    """The inputs of a node and what its bodies use from outside."""
    values = [x for x in node.inputs if x is not None]
    for attribute in node.attributes.values():
        if isinstance(attribute, ir.Attr) and attribute.type == ir.AttributeType.GRAPH:
            for inner in attribute.as_graph():
                values += captured(inner)
    return values


def bare(node: ir.Node) -> onnx.NodeProto:
    return ir.serde.serialize_node(node)


def data_of(value: ir.Value) -> onnx.TensorProto | None:
    tensor = value.const_value
    if tensor is None or tensor.size > DATA_LIMIT:
        return None
    return onnx.numpy_helper.from_array(tensor.numpy(), value.name)


def enter(node: ir.Node) -> list[ir.Graph]:
    """The bodies of a control-flow node, their inputs typed from the node's inputs."""
    bodies = [
        attribute.as_graph()
        for attribute in node.attributes.values()
        if isinstance(attribute, ir.Attr) and attribute.type == ir.AttributeType.GRAPH
    ]
    for body in bodies:
        match node.op_type:
            case "Loop":
                sources = [None, None, *node.inputs[2:]]
                for formal, actual in zip(body.inputs, sources, strict=False):
                    like(formal, actual, drop=None)
            case "Scan":
                states = len(node.inputs) - node.attributes["num_scan_inputs"].as_int()
                axes = node.attributes.get("scan_input_axes")
                along = list(axes.as_ints()) if axes is not None else []
                for i, (formal, actual) in enumerate(
                    zip(body.inputs, node.inputs, strict=False)
                ):
                    place = i - states
                    axis = along[place] if 0 <= place < len(along) else 0
                    like(formal, actual, drop=axis if place >= 0 else None)
            case _:
                pass
    return bodies


def like(formal: ir.Value, actual: ir.Value | None, drop: int | None) -> None:
    """Type a body's input like the value that comes in, without axis `drop`."""
    if actual is None or not is_static(actual):
        return
    shape = list(shape_of(actual))
    if drop is not None:
        del shape[drop]
    formal.type, formal.shape = actual.type, ir.Shape(shape)


def leave(node: ir.Node) -> None:
    """Complete the outputs of a control-flow node from its bodies' outputs."""
    if node.op_type != "If":
        return
    branches = [node.attributes[k].as_graph() for k in ("then_branch", "else_branch")]
    for value, one, other in zip(
        node.outputs, branches[0].outputs, branches[1].outputs, strict=True
    ):
        if is_static(one) and is_static(other) and shape_of(one) == shape_of(other):
            value.type, value.shape = one.type, one.shape
