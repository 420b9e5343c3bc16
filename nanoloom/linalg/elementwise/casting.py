"""Conversions of the element type, and operators that pass their input on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nanoloom.linalg.builder.builder import Builder
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.scalar import BOOL, Scalar, constant, select
from nanoloom.linalg.builder.tensor import Tensor

UINT8 = np.dtype(np.uint8)


def cast(b: Builder, node: Node) -> Tensor:
    """Floats to integers towards zero; integers wrap; f64 to f16 is rounded once."""
    return b.cast(node.input(0), node.output_dtypes[0])


def bit_cast(b: Builder, node: Node) -> Tensor:
    """The same bits under another type of the same width."""
    x, dtype = node.input(0), node.output_dtypes[0]
    if x.dtype.itemsize != dtype.itemsize:
        raise node.unsupported(
            f"{x.dtype} and {dtype} differ in width",
            "BitCast needs element types of the same width",
        )

    def body(s: Scalar) -> Scalar:
        if s.dtype == BOOL:
            return select(s, constant(1, UINT8), 0).bitcast(dtype)
        bits = s.cast(x.dtype)  # f16 and bf16 arrive as f32
        return bits.bitcast(UINT8).cast(BOOL) if dtype == BOOL else bits.bitcast(dtype)

    return b.elementwise(body, x, dtype=dtype)


def dropout(b: Builder, node: Node) -> Sequence[Tensor | None]:
    """Inference: the input itself, and a mask that keeps everything."""
    x = node.input(0)
    if node.version < 7 and not node.int("is_test"):
        raise node.unsupported("it is in training mode", "set is_test = 1")
    training = node.known(2) if node.version >= 12 else None
    if training is not None and bool(training.reshape(-1)[0]):
        ratio = node.known(1)
        if ratio is None or float(ratio.reshape(-1)[0]) != 0.0:
            raise node.unsupported(
                "it is in training mode", "export the model for inference"
            )
    if len(node.wanted) < 2 or not node.wanted[1]:
        return [x]
    return [x, b.full(x.shape, 1, node.output_dtypes[1])]


OPERATORS = {
    "BitCast": bit_cast,
    "Cast": cast,
    "CastLike": cast,
    "Dropout": dropout,
}
