"""Where a reference is known to be wrong, or free in what it gives, and why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Wrong:
    """A reference that is not asked about some nodes, and what is wrong with it.

    source: ort or reference.  when: of the node and its inputs.
    """

    source: str
    operators: frozenset[str]
    why: str
    when: Callable[[onnx.NodeProto, Sequence[Array]], bool] = lambda node, inputs: True


def is_empty(node: onnx.NodeProto, inputs: Sequence[Array]) -> bool:
    return inputs[0].size == 0


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
)

# Which reference computes what in 32 bits, though its operands are 64-bit floats.
COARSE: dict[tuple[str, str], str] = {
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
