"""Convolutions of 8-bit integers whose numbers but the image are known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from nanoloom.graph.layout import DOMAIN
from nanoloom.graph.quantization import BYTES, known_array
from nanoloom.graph.quantization import DOMAIN as INTEGER

SIGNS = {ir.DataType.INT8: "s8", ir.DataType.UINT8: "u8"}
PLACES = {  # of a convolution's x, w, and their zero points
    (INTEGER, "Convolution"): (0, 1, 2, 3),
    (DOMAIN, "ConvInteger"): (0, 1, 2, 3),
    (DOMAIN, "QLinearConv"): (0, 3, 2, 5),
}


@dataclass(frozen=True)
class Operands:
    """Of a convolution of x by constant w, with their zero points where they are known.

    filters: w without its zero point.
    """

    x: ir.Value
    w: ir.Value
    filters: np.ndarray

    @property
    def signs(self) -> tuple[str, str]:
        """The element types of x and w."""
        assert self.x.dtype is not None and self.w.dtype is not None
        return SIGNS[self.x.dtype], SIGNS[self.w.dtype]

    def extremes(self) -> tuple[int, int]:
        """What sums of x's numbers are at least, and at most."""
        least, most = (-128, 127) if self.signs[0] == "s8" else (0, 255)
        axes = tuple(range(1, self.filters.ndim))
        positive = np.maximum(self.filters, 0).sum(axes, dtype=np.int64)
        negative = np.minimum(self.filters, 0).sum(axes, dtype=np.int64)
        low = (positive * least + negative * most).min(initial=0)
        return int(low), int((positive * most + negative * least).max(initial=0))


def operands(node: ir.Node) -> Operands | None:
    """Of a convolution of integers whose numbers but the image are known."""
    places = PLACES.get((node.domain, node.op_type))
    if places is None:
        return None
    given = [node.inputs[p] if p < len(node.inputs) else None for p in places]
    x, w = given[:2]
    filters, *zeros = (known_array(value) for value in given[1:])
    unknown = (
        value is not None and zero is None
        for value, zero in zip(given[2:], zeros, strict=True)
    )
    if x is None or w is None or filters is None or any(unknown):
        return None
    if x.dtype not in BYTES or w.dtype not in BYTES or w.shape is None:
        return None
    image, less = zeros
    if image is not None and image.size != 1:
        return None
    if less is not None and less.size not in (1, filters.shape[0]):
        return None  # they do not fit: linalg says so
    wide = filters.astype(np.int16)
    if less is not None:
        wide = wide - less.astype(np.int16).reshape(-1, *(1,) * (wide.ndim - 1))
    return Operands(x, w, wide)
