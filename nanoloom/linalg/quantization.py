"""QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear: integers of 8 to 32 bits.

Scales and zero points are one for the tensor, one a place of an axis, or one a block of
places.  Rounding is to the nearest, ties to even; what does not fit saturates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir

from nanoloom.linalg.builder import Builder, computed_as
from nanoloom.linalg.node import Node
from nanoloom.linalg.placed import Blocked, Placed, combine
from nanoloom.linalg.scalar import Number, Scalar, constant, is_float, select
from nanoloom.linalg.tensor import Tensor

FLOAT32, INT32 = np.dtype(np.float32), np.dtype(np.int32)


def saturated(x: Scalar, dtype: np.dtype) -> Scalar:
    """A whole float as an integer type: what does not fit saturates, NaN is the lowest.

    Comparisons choose, not `maximum`, so that NaN never reaches the conversion.
    """
    limits = np.iinfo(dtype)
    low, high = constant(int(limits.min), x.dtype), constant(int(limits.max), x.dtype)
    above = select(x > low, x, low)
    return select(above < high, above, high).cast(dtype)


@dataclass(frozen=True)
class Grid:
    """The tensor under the shape in which scales can be read through a plain map."""

    x: Tensor
    place: tuple[int, ...] | None
    axis: int
    block: int

    def on(self, b: Builder, parameter: Tensor) -> Placed:
        """A scale or zero point beside the tensor's elements."""
        if parameter.size == 1:
            return Placed(b.reshape(parameter, ()), ())
        if self.place is None:
            return Blocked(parameter, tuple(range(self.x.rank)), self.axis, self.block)
        return Placed(parameter, self.place)


def grid_of(b: Builder, node: Node, x: Tensor, scale: Tensor) -> Grid:
    """Per tensor, per axis, or blocked: whole blocks become a dimension."""
    axis = node.int("axis", 1) % max(x.rank, 1)
    block = node.int("block_size")
    if scale.size == 1:
        return Grid(x, (), axis, 1)
    if not block:
        if scale.rank != 1 or scale.shape[0] != x.shape[axis]:
            raise node.unsupported(
                f"scale {list(scale.shape)} does not fit axis {axis} of "
                f"{list(x.shape)}",
                "give one scale for the tensor or one for each place of the axis",
            )
        return Grid(x, (axis,), axis, 1)
    if x.shape[axis] % block:
        return Grid(x, None, axis, block)
    inner = (x.shape[axis] // block, block)
    split = b.reshape(x, (*x.shape[:axis], *inner, *x.shape[axis + 1 :]))
    place = tuple(d + (d > axis) for d in range(x.rank))
    return Grid(split, place, axis, block)


def quantize(b: Builder, node: Node) -> Tensor:
    """saturate(round(x / scale) + zero point)."""
    x, scale, zero = node.input(0), node.input(1), node.optional(2)
    dtype = node.output_dtypes[0]
    grid = grid_of(b, node, x, scale)
    given = [grid.on(b, t) for t in (scale, zero) if t is not None]
    inner = division_type(node, x.dtype, scale.dtype)
    made = combine(
        b,
        lambda s, by, *zeros: quantized(s, by, inner, dtype, *zeros),
        grid.x.shape,
        dtype,
        grid.x,
        *given,
    )
    return b.reshape(made, x.shape)


def quantized(
    x: Scalar, scale: Scalar, inner: np.dtype, dtype: np.dtype, *zero: Scalar
) -> Scalar:
    """The division is rounded to `inner`; integers up to 2^23 are exact behind it."""
    wide = computed_as(inner)
    ratio = (x.cast(wide) / scale.cast(wide)).cast(inner).cast(wide)
    whole = ratio.math("roundeven")
    for z in zero:
        whole = whole + z.cast(wide)
    return saturated(whole, dtype)


def division_type(node: Node, x: np.dtype, scale: np.dtype) -> np.dtype:
    """What x / scale is rounded to: `precision`, or the type that holds both."""
    if node.int("precision"):
        return np.dtype(onnx_ir.DataType(node.int("precision")).numpy())
    if x == scale and is_float(x):
        return x
    return np.result_type(computed_as(x), computed_as(scale))


def dequantize(b: Builder, node: Node) -> Tensor:
    """(x - zero point) * scale."""
    x, scale, zero = node.input(0), node.input(1), node.optional(2)
    dtype = node.output_dtypes[0]
    grid = grid_of(b, node, x, scale)
    given = [grid.on(b, t) for t in (scale, zero) if t is not None]
    wide = computed_as(dtype)
    exact = INT32 if x.dtype.itemsize < 4 else wide  # 8 and 16 bits cannot overflow

    def body(s: Scalar, by: Scalar, *zeros: Scalar) -> Scalar:
        shifted = s.cast(exact)
        for z in zeros:
            shifted = shifted - z.cast(exact)
        return shifted.cast(wide) * by.cast(wide)

    made = combine(b, body, grid.x.shape, dtype, grid.x, *given)
    return b.reshape(made, x.shape)


def extreme(b: Builder, x: Tensor, *, largest: bool) -> Tensor:
    """The largest (smallest) of zero and all elements."""

    def body(sofar: Scalar, s: Scalar) -> Scalar:
        return sofar.maximum(s) if largest else sofar.minimum(s)

    return b.reduce(body, x, range(x.rank), 0, keepdims=False)


def dynamic_quantize(b: Builder, node: Node) -> Sequence[Tensor]:
    """uint8 with the scale and zero point that the data's range asks for."""
    x, dtype = node.input(0), node.output_dtypes[0]
    most: Number = int(np.iinfo(dtype).max)
    high, low = extreme(b, x, largest=True), extreme(b, x, largest=False)

    def step(top: Scalar, bottom: Scalar) -> Scalar:
        width = top - bottom
        return select(width.equal(0), constant(1, FLOAT32), width) / most

    scale = b.elementwise(step, high, low)
    zero = b.elementwise(
        lambda bottom, by: saturated((0 - bottom / by).math("roundeven"), dtype),
        low,
        scale,
        dtype=dtype,
    )
    y = combine(
        b,
        lambda s, by, z: quantized(s, by, FLOAT32, dtype, z),
        x.shape,
        dtype,
        x,
        Placed(scale, ()),
        Placed(zero, ()),
    )
    return [y, scale, zero]


OPERATORS = {
    "DequantizeLinear": dequantize,
    "DynamicQuantizeLinear": dynamic_quantize,
    "QuantizeLinear": quantize,
}
