"""Which node tests ask for what nanoloom leaves out on purpose."""

from __future__ import annotations

from collections.abc import Iterator

import onnx
from onnx import TensorProto

TRAINING, STRINGS = "training", "strings"
SEQUENCES, NARROW = "sequences and optionals", "types below 8 bits and 8-bit floats"
TRAINING_DOMAIN = "ai.onnx.preview.training"
WIDE = {
    TensorProto.UNDEFINED,
    TensorProto.BOOL,
    TensorProto.INT8,
    TensorProto.INT16,
    TensorProto.INT32,
    TensorProto.INT64,
    TensorProto.UINT8,
    TensorProto.UINT16,
    TensorProto.UINT32,
    TensorProto.UINT64,
    TensorProto.FLOAT16,
    TensorProto.BFLOAT16,
    TensorProto.FLOAT,
    TensorProto.DOUBLE,
    TensorProto.COMPLEX64,
    TensorProto.COMPLEX128,
    TensorProto.STRING,
}


def left_out(model: onnx.ModelProto) -> str:
    """What a model asks for that nanoloom leaves out, or ""."""
    nodes = list(all_nodes(model.graph))
    values = [*model.graph.input, *model.graph.output, *model.graph.value_info]
    kinds = [value.type.WhichOneof("value") for value in values]
    if any(is_training(node) for node in nodes):
        return TRAINING
    if set(kinds) & {"sequence_type", "optional_type"} or any(
        "Sequence" in node.op_type and node.op_type != "ReverseSequence"
        for node in nodes
    ):
        return SEQUENCES
    elements = {value.type.tensor_type.elem_type for value in values}
    elements |= {a.i for n in nodes for a in n.attribute if is_type(n, a)}
    elements |= {a.t.data_type for n in nodes for a in n.attribute}
    texts = [a.strings for n in nodes for a in n.attribute if a.strings]
    if TensorProto.STRING in elements or texts:
        return STRINGS
    return NARROW if elements - WIDE else ""


def all_nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """The nodes of a graph and of the bodies in it."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for body in (attribute.g, *attribute.graphs):
                yield from all_nodes(body)


def is_training(node: onnx.NodeProto) -> bool:
    if node.domain == TRAINING_DOMAIN:
        return True
    mode = any(a.name == "training_mode" and a.i for a in node.attribute)
    return mode or (node.op_type == "Dropout" and len(node.input) == 3)


def is_type(node: onnx.NodeProto, attribute: onnx.AttributeProto) -> bool:
    """Whether an integer attribute names an element type."""
    by_name = attribute.name in ("dtype", "output_dtype", "precision")
    return by_name or (node.op_type in ("Cast", "BitCast") and attribute.name == "to")
