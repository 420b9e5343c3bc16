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
        "reference",
        operators("Hardmax LogSoftmax Softmax"),
        "before set 13 they were of all axes from one on",
        is_flat,
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

# Which reference computes what in 32 bits, though its operands are 64-bit floats.
COARSE: dict[tuple[str, str], str] = {
    ("ort", "DFT"): "its roots of one are rounded to 32 bits",
    ("ort", "Gelu"): "its constants are rounded to 32 bits",
    ("ort", "HardSwish"): "it has 1/6 in 32 bits",
    ("reference", "Gelu"): "its constants are rounded to 32 bits",
    ("ort", "Shrink"): "its operands are rounded to 32 bits",
    ("reference", "Erf"): "its results are rounded to 32 bits",
    ("reference", "HardSwish"): "it has 1/6 in 64 bits, the definition has 32",
}

# Operators whose integer results rest on products of scales that ONNX does not say how
# to round: the places of the scales, which a trial changes by a few roundings.
JITTERED: dict[str, tuple[int, ...]] = {
    "QLinearMatMul": (1, 4, 6),
    "QLinearConv": (1, 4, 6),
}

# Element types that an operator is not drawn with, and why.
OPEN: dict[str, tuple[str, str]] = {
    "ReduceLogSumExp": ("iu", "a logarithm near a whole number is cut off either way"),
}

# Operators without a recipe, and why.
NOT_DRAWN: dict[str, str] = {
    "nanoloom.integer.MatMul": "only nanoloom itself writes it",
}
