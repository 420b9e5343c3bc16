"""Shapes of one node's outputs, through ONNX's own inference and known data."""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
import onnx
import onnx_ir as ir
from onnx import checker, shape_inference

from nanoloom.errors import ModelError
from nanoloom.graph import custom_types
from nanoloom.graph.agreement import WORDS, word
from nanoloom.graph.alike_nodes import Answers, data_key, operator_key, type_key
from nanoloom.graph.completion import complete
from nanoloom.graph.onnx_crash_guards import require_no_crash
from nanoloom.graph.reshape_inference import reshaped
from nanoloom.graph.types import is_static, merged, shape_of, type_proto

REFUSALS = (
    shape_inference.InferenceError, checker.ValidationError, RuntimeError, KeyError,
    ValueError,
)  # fmt: skip
KIND = re.compile(r"^\[\w+\] ")  # of error, in front of ONNX's own sentences
# Operators for which ONNX infers nothing: the first version that does, or none at all.
# Windows of ceil_mode that would begin behind the image are none, as ONNX's reference
# and other runtimes have it at any version: its inference counts them before this one.
FIRST_INFERRED = {
    "GreaterOrEqual": 16, "LessOrEqual": 16,
    "MaxPool": 22, "AveragePool": 22, "LpPool": 22,
}  # fmt: skip
NEGATIVE_AXES = 11  # the first operator set that has them everywhere
LIKE_INPUT = ("GroupNormalization", "MeanVarianceNormalization")
DATA_LIMIT = 4096  # elements of a constant that inference may want to see


@dataclass(frozen=True)
class Inferred:
    """What ONNX says of an output, as far as it can tell."""

    type: ir.TypeProtocol | None
    shape: ir.Shape | None

    @classmethod
    def of(cls, proto: onnx.TypeProto) -> Inferred:
        kind = ir.serde.deserialize_type_proto_for_type(proto)
        return cls(kind, ir.serde.deserialize_type_proto_for_shape(proto))

    def give(self, value: ir.Value) -> None:
        """To an output, which may be changed later (symbolic dimensions stay unknown).

        A shape that it has already fills in what is open.
        """
        if self.type is not None:
            is_plain = isinstance(self.type, ir.TensorType)
            value.type = ir.TensorType(self.type.dtype) if is_plain else self.type
        if self.shape is not None:
            value.shape = merged(self.shape.copy(), value.shape)


INFERRED = Answers[list[Inferred | None]]()


def infer(node: ir.Node, opsets: dict[str, int]) -> None:
    """Give the outputs their element types and shapes, as far as ONNX can tell."""
    version = node.version or opsets.get(node.domain, 1)
    if not onnx.defs.has(node.op_type, version, node.domain):
        custom_types.complete(node)
        return
    first = node.inputs[0] if node.inputs else None
    if node.op_type in LIKE_INPUT and first is not None:
        node.outputs[0].type, node.outputs[0].shape = first.type, first.shape
        return
    require_no_crash(node)
    shape = reshaped(node)
    if shape is not None and first is not None:
        require_declared_type(node, node.outputs[0], first.dtype)
        node.outputs[0].type, node.outputs[0].shape = first.type, ir.Shape(shape)
        return
    version = max(version, FIRST_INFERRED.get(node.op_type, 1))
    found = INFERRED.of(asked(node, opsets), lambda: inferred(node, opsets, version))
    for value, made in zip(node.outputs, found, strict=True):
        if made is not None:
            if isinstance(made.type, ir.TensorType):
                require_declared_type(node, value, made.type.dtype)
            made.give(value)
            require_extents(node, value)
    complete(node)


def asked(node: ir.Node, opsets: dict[str, int]) -> Hashable | None:
    """What decides about the answer of ONNX's inference; None for too much of it."""
    constants = [None if x is None or not x.name else small(x) for x in node.inputs]
    parts = operator_key(node, opsets), type_key(node.inputs), data_key(constants)
    return None if None in parts else parts


def inferred(
    node: ir.Node, opsets: dict[str, int], version: int
) -> list[Inferred | None]:
    """The types of a node's outputs by ONNX's inference; None where it cannot tell."""
    values = {x.name: x for x in node.inputs if x is not None and x.name}
    types = {
        name: proto
        for name, x in values.items()
        if (proto := type_proto(x)) is not None
    }
    data = {name: small for name, x in values.items() if (small := data_of(x))}
    axes = node.inputs[3] if node.op_type == "Pad" and len(node.inputs) > 3 else None
    if axes is not None and axes.name in data:  # inference reads int64 only
        wide = onnx.numpy_helper.to_array(data[axes.name]).astype(np.int64)
        data[axes.name] = onnx.numpy_helper.from_array(wide, axes.name)
    versions = {**opsets, node.domain: version}
    imports = [onnx.helper.make_opsetid(d, v) for d, v in versions.items()]
    try:
        found = shape_inference.infer_node_outputs(
            onnx.defs.get_schema(node.op_type, version, node.domain),
            proto_for_inference(node, version),
            types,
            data,
            opset_imports=imports,
        )
    except REFUSALS as error:
        reason = KIND.sub("", str(error).strip().splitlines()[-1])
        raise ModelError(
            f"its inputs do not fit together: {reason}",
            where=f"node {node.name} ({node.op_type})",
        ) from None
    protos = [found.get(value.name or "") for value in node.outputs]
    return [None if proto is None else Inferred.of(proto) for proto in protos]


def require_extents(node: ir.Node, value: ir.Value) -> None:
    """Padding may cut off more than there is, and then ONNX counts on below 0."""
    if not isinstance(value.type, ir.TensorType):
        return
    if is_static(value) and min(shape_of(value), default=0) < 0:
        raise ModelError(
            f"its output would have the shape {list(shape_of(value))}",
            where=f"node {node.name} ({node.op_type})",
            hint="look at the model, and at the sizes given for its dimensions",
        )


def require_declared_type(
    node: ir.Node, value: ir.Value, made: ir.DataType | None
) -> None:
    """A graph's output has the element type that its node gives it."""
    if not value.is_graph_output():
        return
    given = value.type.dtype if isinstance(value.type, ir.TensorType) else None
    if None in (made, given) or made == given:
        return
    is_, says = (WORDS.get(word(x), word(x)) for x in (made, given) if x is not None)
    raise ModelError(
        f"its output {value.name} is {is_}, the model says {says}",
        where=f"node {node.name} ({node.op_type})",
    )


def proto_for_inference(node: ir.Node, version: int) -> onnx.NodeProto:
    """What inference sees: it has another default for `onesided` than ONNX says.

    It adds output_padding to the size that auto_pad makes the stride's multiple, and
    does not read the size of a recurrence's state from its weights.  In operator sets
    without negative axes, which others run all the same, it gets wrong shapes by them.
    """
    made = ir.serde.serialize_node(node)
    if version < NEGATIVE_AXES:
        count_from_front(node, made)
    mode = node.attributes.get("auto_pad")
    same = mode is not None and mode.as_string().startswith("SAME")
    if node.op_type == "ConvTranspose" and same:
        kept = [a for a in made.attribute if a.name != "output_padding"]
        del made.attribute[:]
        made.attribute.extend(kept)
    if node.op_type == "STFT" and "onesided" not in node.attributes:
        made.attribute.append(onnx.helper.make_attribute("onesided", 1))
    if node.op_type in ("GRU", "LSTM", "RNN") and "hidden_size" not in node.attributes:
        state = node.inputs[2]
        if state is not None and is_static(state):
            size = shape_of(state)[-1]
            made.attribute.append(onnx.helper.make_attribute("hidden_size", size))
    return made


def count_from_front(node: ir.Node, made: onnx.NodeProto) -> None:
    """Write negative axes of a node as what they are of its input."""
    first = node.inputs[0] if node.inputs else None
    if first is None or first.shape is None or node.op_type == "OneHot":
        return
    rank = first.shape.rank()
    for attribute in made.attribute:
        if attribute.name == "axis" and attribute.i < 0:
            attribute.i += rank
        elif attribute.name == "axes":
            more = len(attribute.ints) if node.op_type == "Unsqueeze" else 0
            axes = [axis + (rank + more) * (axis < 0) for axis in attribute.ints]
            attribute.ints[:] = sorted(axes) if more else axes


def data_of(value: ir.Value) -> onnx.TensorProto | None:
    tensor = small(value)
    if tensor is None:
        return None
    return onnx.numpy_helper.from_array(tensor.numpy(), value.name)


def small(value: ir.Value) -> ir.TensorProtocol | None:
    """A constant that inference may want to see."""
    tensor = value.const_value
    if tensor is None or tensor.size > DATA_LIMIT:
        return None
    if tensor.dtype == ir.DataType.STRING:  # none decides about a shape
        return None
    return tensor
