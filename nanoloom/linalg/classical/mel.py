"""MelWeightMatrix: triangles over the bins of a spectrogram, evenly spaced in mel."""

from __future__ import annotations

from math import log

import numpy as np

from nanoloom.linalg.builder.builder import Builder
from nanoloom.linalg.builder.indexing import INT64, dims, map_generic, position
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.scalar import Scalar, is_float, select
from nanoloom.linalg.builder.tensor import Tensor

FLOAT64 = np.dtype(np.float64)


def mel_weight_matrix(b: Builder, node: Node) -> Tensor:
    """[dft_length / 2 + 1, mel bins]; the sizes are known now, the frequencies not."""
    dtype, shape = node.output_dtypes[0], node.output_shapes[0]
    length = node.known(1)
    assert length is not None
    scale = int(length.reshape(-1)[0]) + 1
    rate, low, high = (
        (b.reshape(b.cast(node.input(i), FLOAT64), ()), dims(2, [])) for i in (2, 3, 4)
    )

    def body(rate: Scalar, low: Scalar, high: Scalar) -> Scalar:
        start = mel(low)
        step = (mel(high) - start) / (shape[1] + 2)

        def edge(number: int) -> Scalar:
            """The spectrogram's bin where a triangle begins, peaks or ends."""
            place = (position(1) + number).cast(FLOAT64) * step + start
            hertz = (place / 2595 * log(10)).math("expm1") * 700
            return (hertz * scale / rate).math("floor")

        left, top, right = edge(0), edge(1), edge(2)
        at = position(0).cast(FLOAT64)
        rising = (at - left) / (top - left)
        rising = select(top.equal(left), at * 0 + 1, rising)
        rising = select((at >= left) & (at <= top), rising, 0)
        falls = (at >= top) & (at < right)
        value = select(falls, (right - at) / (right - top), rising)
        return value if is_float(dtype) else value.cast(INT64)

    made = FLOAT64 if is_float(dtype) else INT64
    return b.cast(map_generic(b, shape, made, [rate, low, high], body), dtype)


def mel(hertz: Scalar) -> Scalar:
    return (hertz / 700).math("log1p") * (2595 / log(10))


OPERATORS = {"MelWeightMatrix": mel_weight_matrix}
