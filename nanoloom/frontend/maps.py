"""ZipMap, left out: a program gives the scores of classes as the tensor they are."""

from __future__ import annotations

import warnings

import onnx

ML = "ai.onnx.ml"
LABELS = ("classlabels_int64s", "classlabels_strings")


def has_maps(model: onnx.ModelProto) -> bool:
    return any(map(is_map, model.graph.node))


def drop_maps(model: onnx.ModelProto, where: str) -> None:
    """Outputs that are lists of dictionaries become [rows, classes], in place.

    It is said once, in a warning: the columns are in the order of the labels.
    """
    outputs = {value.name: value for value in model.graph.output}
    dropped: list[str] = []
    for node in model.graph.node:
        if not is_map(node):
            continue
        labels = [len(getattr(a, kind_of(a))) for a in node.attribute if is_labels(a)]
        if (value := outputs.get(node.output[0])) is not None:
            kind = onnx.TensorProto.FLOAT
            made = onnx.helper.make_tensor_value_info(
                value.name, kind, [None, labels[0] if labels else None]
            )
            value.CopyFrom(made)
            dropped.append(value.name)
        del node.attribute[:]
        node.domain, node.op_type = "", "Identity"
    if dropped:
        names = ", ".join(dropped)
        warnings.warn(
            f"{where}: output {names} is a tensor [rows, classes] of scores, not a list"
            " of dictionaries: ZipMap is left out",
            RuntimeWarning,
            stacklevel=2,
        )


def is_map(node: onnx.NodeProto) -> bool:
    return (node.domain, node.op_type) == (ML, "ZipMap") and len(node.output) == 1


def is_labels(attribute: onnx.AttributeProto) -> bool:
    return attribute.name in LABELS


def kind_of(attribute: onnx.AttributeProto) -> str:
    return "ints" if attribute.ints else "strings"
