"""Where a reference is known to be wrong, or free in what it gives, and why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

Array = np.ndarray[Any, np.dtype[Any]]
When = Callable[[onnx.NodeProto, Sequence[Array], int], bool]


@dataclass(frozen=True)
class Wrong:
    """A reference that is not asked about some nodes, and what is wrong with it.

    source: ort or reference.  when: of the node, its inputs and the operator set.
    """

    source: str
    operators: frozenset[str]
    why: str
    when: When = lambda node, inputs, opset: True


def is_empty(node: onnx.NodeProto, inputs: Sequence[Array], opset: int) -> bool:
    return inputs[0].size == 0


def is_flat(node: onnx.NodeProto, inputs: Sequence[Array], opset: int) -> bool:
    return opset < 13


def is_cubic_inside(node: onnx.NodeProto, inputs: Sequence[Array], opset: int) -> bool:
    words = {a.name: a.s for a in node.attribute}
    cubic = words.get("mode", b"").endswith(b"cubic")
    return cubic and words.get("padding_mode", b"zeros") != b"zeros"


def is_padded_by_name(
    node: onnx.NodeProto, inputs: Sequence[Array], opset: int
) -> bool:
    return any(a.name == "auto_pad" and a.s != b"NOTSET" for a in node.attribute)


def is_smooth_between_corners(
    node: onnx.NodeProto, inputs: Sequence[Array], opset: int
) -> bool:
    given = {a.name: a.s or a.i for a in node.attribute}
    corners = given.get("coordinate_transformation_mode") == b"align_corners"
    return corners and given.get("antialias") == 1


def is_grouped(node: onnx.NodeProto, inputs: Sequence[Array], opset: int) -> bool:
    return any(a.name == "group" and a.i > 1 for a in node.attribute)


def operators(text: str) -> frozenset[str]:
    return frozenset(text.split())


WRONG = (
    Wrong(
        "ort",
        operators("""
            ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean
            ReduceMin ReduceProd ReduceSum ReduceSumSquare
        """),
        "negative axes of an empty array take out other axes",
        is_empty,
    ),
    Wrong(
        "ort",
        operators("GridSample"),
        "it moves each pixel to the border, where ONNX moves the coordinate",
        is_cubic_inside,
    ),
    Wrong(
        "ort",
        operators("Resize"),
        "with antialias, corners that are aligned count as if they were not",
        is_smooth_between_corners,
    ),
    Wrong(
        "ort",
        operators("MeanVarianceNormalization"),
        "it divides by a deviation of 0, where ONNX adds 1e-9",
    ),
    Wrong(
        "reference",
        operators("AveragePool LpPool MaxPool"),
        "auto_pad gives it other sizes than ONNX's formula",
        is_padded_by_name,
    ),
    Wrong(
        "reference",
        operators("Hardmax LogSoftmax Softmax"),
        "before set 13 they were of all axes from one on",
        is_flat,
    ),
    Wrong(
        "reference",
        operators("RoiAlign"),
        "before set 16 there was no half pixel",
        lambda node, inputs, opset: opset < 16,
    ),
    Wrong(
        "reference",
        operators("ConvTranspose"),
        "the bias of the first channel is added to every group",
        is_grouped,
    ),
    Wrong(
        "reference",
        operators("LpNormalization"),
        "for p = 1 it sums the numbers, not their absolute values",
    ),
)


def distrusted(source: str, model: onnx.ModelProto) -> bool:
    """Whether a reference is known to be wrong about an operator of a model."""
    used = {node.op_type for node in model.graph.node}
    return any(x.source == source and x.operators & used for x in WRONG)


# Which reference rounds what to 32 bits, though its operands are 64-bit floats.
COARSE: dict[tuple[str, str], str] = {
    ("ort", "DFT"): "its roots of one are rounded to 32 bits",
    ("ort", "Gelu"): "its constants are rounded to 32 bits",
    ("ort", "HardSwish"): "it has 1/6 in 32 bits",
    ("reference", "Gelu"): "its constants are rounded to 32 bits",
    ("ort", "Shrink"): "its operands are rounded to 32 bits",
    ("reference", "Erf"): "its results are rounded to 32 bits",
    ("reference", "OneHot"): "it multiplies and adds where others choose",
    ("reference", "HardSwish"): "it has 1/6 in 64 bits, the definition has 32",
}

# Scales that ONNX does not say how to multiply, by place among the inputs: a trial
# changes them by a few roundings, since the results are integers.
SCALES: dict[str, tuple[int, ...]] = {
    "QLinearMatMul": (1, 4, 6),
    "QLinearConv": (1, 4, 6),
}

# Coordinates, which are rounded before anything is looked up there.
COORDINATES: dict[str, tuple[int, ...]] = {
    "DeformConv": (2,),
    "GridSample": (1,),
    "MaxRoiPool": (1,),
    "RoiAlign": (1,),
}

# Differences of numbers as large as one: the error is relative to that.
CANCELLING: dict[str, str] = {
    "BlackmanWindow": "sums of cosines",
    "HammingWindow": "sums of cosines",
    "HannWindow": "the square of a sine near 0",
}

# Roundings of a result whose weights are differences of coordinates.
WEIGHTED: dict[str, float] = {"Resize": 256.0, "Upsample": 256.0, "RoiAlign": 256.0}

# Element types that an operator is not drawn with, and why.
OPEN: dict[str, tuple[str, str]] = {
    "ReduceLogSumExp": ("iu", "a logarithm near a whole number is cut off either way"),
}

# Operators without a recipe, and why.
NOT_DRAWN: dict[str, str] = {
    "nanoloom.integer.MatMul": "only nanoloom itself writes it",
}
