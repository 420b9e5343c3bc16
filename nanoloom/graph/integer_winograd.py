"""Which convolutions of 8-bit integers are computed by Winograd's method: exactly.

    y = QLinearConv(x, w ...)  ->  y = QLinearConv<winograd=m>(x, w ...)

where numbers are multiplied as 16-bit pairs, which products of transformed numbers are
as well (linalg/products/integer_winograd.py): a target's dot products of bytes do four
times as much.  Sums that are 2^bits times too large must fit 32 bits: what they are at
most, the filters say.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from nanoloom.graph.layout import DOMAIN
from nanoloom.graph.quantization import BYTES, known_array
from nanoloom.graph.quantization import DOMAIN as INTEGER
from nanoloom.graph.types import shape_of
from nanoloom.graph.winograd import TILES, Numbers, is_square, mark
from nanoloom.target.facts import Target
from nanoloom.target.instructions.choose import dot_for, pair_products

LOST = {2: 2, 4: 6}  # bits of 32 that the results of a tile are too large by
SIGNS = {ir.DataType.INT8: "s8", ir.DataType.UINT8: "u8"}
PLACES = {  # of a convolution's x, w, and their zero points
    (INTEGER, "Convolution"): (0, 1, 2, 3),
    (DOMAIN, "ConvInteger"): (0, 1, 2, 3),
    (DOMAIN, "QLinearConv"): (0, 3, 2, 5),
}


def transform_integers(graph: ir.Graph, target: Target) -> None:
    """Mark the convolutions that are faster by Winograd's method, in place."""
    if pair_products(target) is None:
        return
    # Two numbers a lane, but an addition beside each instruction.
    numbers = Numbers(
        target.lanes(32) * target.vector.fma_per_cycle,
        lanes=1, filters=2, image=2, result=4, kept=2, sums=2, transforms=1,
    )  # fmt: skip
    for node in graph:
        found = operands(node)
        if found is None or not is_square(node, found.x, found.w):
            continue
        if dot_for(target, *found.signs) is None:
            tiles = [tile for tile in TILES if found.fits(tile)]
            mark(node, shape_of(found.w), numbers, target, tiles)


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

    def fits(self, tile: int) -> bool:
        """Whether the sums of x's numbers have the bits that a tile leaves them."""
        least, most = (-128, 127) if self.signs[0] == "s8" else (0, 255)
        axes = tuple(range(1, self.filters.ndim))
        positive = np.maximum(self.filters, 0).sum(axes, dtype=np.int64)
        negative = np.minimum(self.filters, 0).sum(axes, dtype=np.int64)
        low = (positive * least + negative * most).min(initial=0)
        high = (positive * most + negative * least).max(initial=0)
        limit = 1 << 31 - LOST[tile]
        return bool(-limit <= low and high < limit)


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
