"""Element types and shapes of values before any size is known, found when asked for.

What an exporter declares counts; of the rest ONNX's inference says what it can.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import onnx
import onnx_ir as ir
from onnx import checker, shape_inference

from nanoloom.frontend.operators import schema_of

REFUSALS = (
    shape_inference.InferenceError, checker.ValidationError, RuntimeError, KeyError,
    ValueError,
)  # fmt: skip
CRASHES = frozenset(("GatherND", "Split"))  # ONNX's inference, for damaged attributes
DATA_LIMIT = 64  # elements of a constant that decides about a shape
Dimension = int | str | None
Found = onnx.TypeProto | None


@dataclass
class InferredTypes:
    """opsets: of the model.  found: what is known of values, None for nothing."""

    opsets: Mapping[str, int]
    found: dict[ir.Value, Found] = field(default_factory=dict[ir.Value, Found])

    def dtype(self, value: ir.Value) -> ir.DataType | None:
        if value.dtype is not None:
            return value.dtype
        proto = self.of(value)
        kind = None if proto is None else proto.tensor_type.elem_type
        return ir.DataType(kind) if kind else None

    def shape(self, value: ir.Value) -> list[Dimension] | None:
        """A number, a name or None for each dimension; None for an unknown rank."""
        if value.shape is not None:
            return [d if isinstance(d, int) else d.value for d in value.shape]
        proto = self.of(value)
        if proto is None or not proto.tensor_type.HasField("shape"):
            return None
        return [
            d.dim_value if d.HasField("dim_value") else d.dim_param or None
            for d in proto.tensor_type.shape.dim
        ]

    def of(self, value: ir.Value) -> Found:
        """The type, after those of all that it is made of."""
        pending = [value]
        while pending:
            last = pending[-1]
            node = last.producer()
            missing: list[ir.Value] = []
            if last not in self.found and declared(last) is None and node is not None:
                inputs = (x for x in node.inputs if x is not None)
                missing = [x for x in inputs if x not in self.found]
            if missing:
                pending += missing
                continue
            pending.pop()
            if last not in self.found:
                self.visit(last, node)
        return self.found[value]

    def visit(self, value: ir.Value, node: ir.Node | None) -> None:
        known = declared(value)
        if known is not None or node is None:
            self.found[value] = known
            return
        made = self.inferred(node)
        for out in node.outputs:
            self.found[out] = made.get(out.name or "")

    def inferred(self, node: ir.Node) -> Mapping[str, onnx.TypeProto]:
        version = node.version or self.opsets.get(node.domain)
        schema = schema_of(node.domain, node.op_type, version) if version else None
        graphs = (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS)
        if any(a.type in graphs for a in node.attributes.values()) or schema is None:
            return {}
        if node.op_type in CRASHES:
            return self.like_input(node) if node.op_type == "Split" else {}
        values = {x.name: x for x in node.inputs if x is not None and x.name}
        types = {n: t for n, x in values.items() if (t := self.found[x]) is not None}
        data = {n: t for n, x in values.items() if (t := small_data(x)) is not None}
        if len(types) < len(values):
            return {}
        versions = {**self.opsets, node.domain: version}
        imports = [onnx.helper.make_opsetid(d, v) for d, v in versions.items() if v]
        proto = ir.serde.serialize_node(node)
        try:
            return shape_inference.infer_node_outputs(
                schema, proto, types, data, opset_imports=imports
            )
        except REFUSALS:  # the graph stage says what is wrong
            return {}

    def like_input(self, node: ir.Node) -> Mapping[str, onnx.TypeProto]:
        """Parts of a tensor: of its type and rank."""
        given = node.inputs[0] if node.inputs else None
        whole = None if given is None else self.found[given]
        if whole is None:
            return {}
        part = onnx.TypeProto()
        part.CopyFrom(whole)
        for dim in part.tensor_type.shape.dim:
            dim.Clear()
        return {out.name: part for out in node.outputs if out.name}


def declared(value: ir.Value) -> Found:
    """What is said of a tensor, if that is its type and its shape."""
    if not isinstance(value.type, ir.TensorType) or value.shape is None:
        return None
    proto = ir.serde.serialize_type(value.type)
    ir.serde.serialize_shape_into(proto, value.shape)
    return proto


def constant_tensor(value: ir.Value) -> ir.TensorProtocol | None:
    """The numbers of a weight or of a Constant; None for what is computed."""
    if value.const_value is not None:
        return value.const_value
    node = value.producer()
    if node is None or node.op_type != "Constant" or node.domain not in ("", "ai.onnx"):
        return None
    attribute = node.attributes.get("value")
    if attribute is None or attribute.type != ir.AttributeType.TENSOR:
        return None
    return attribute.as_tensor()


def small_data(value: ir.Value) -> onnx.TensorProto | None:
    tensor = constant_tensor(value)
    if tensor is None or tensor.size > DATA_LIMIT:
        return None
    if tensor.dtype == ir.DataType.STRING:
        return None
    return onnx.numpy_helper.from_array(tensor.numpy(), value.name)
