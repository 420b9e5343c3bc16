"""QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear: integers of 8 to 32 bits.

Scales and zero points are one for the tensor, one a place of an axis, or one a block of
places.  Rounding is to the nearest, ties to even; what does not fit saturates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir

from nanoloom.ir.mlir import ir
from nanoloom.linalg.builder.builder import (
    PARALLEL,
    REDUCTION,
    Builder,
    Map,
    computed_as,
)
from nanoloom.linalg.builder.lanes import lanes_of
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.placed_operands import (
    BlockedOperand,
    BroadcastOperand,
    combine,
    number_of,
)
from nanoloom.linalg.builder.quantized_quotient import is_exact, quantized_quotient
from nanoloom.linalg.builder.scalar import Number, Scalar, constant, is_float, select
from nanoloom.linalg.builder.tensor import Tensor

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

    def on(self, b: Builder, parameter: Tensor) -> BroadcastOperand:
        """A scale or zero point beside the tensor's elements."""
        if parameter.size == 1:
            return BroadcastOperand(b.reshape(parameter, ()), ())
        if self.place is None:
            return BlockedOperand(
                parameter, tuple(range(self.x.rank)), self.axis, self.block
            )
        return BroadcastOperand(parameter, self.place)


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
    inner = division_type(node, x.dtype, scale.dtype)
    by, start = number_of(scale), 0 if zero is None else number_of(zero)
    bytes_of_floats = dtype.itemsize == 1 and inner == x.dtype == scale.dtype == FLOAT32
    if bytes_of_floats and by is not None and start is not None and is_exact(by):

        def near(s: Scalar) -> Scalar:
            return quantized_quotient(s, by, int(start), dtype)

        return combine(b, near, x.shape, dtype, x)
    grid = grid_of(b, node, x, scale)
    given = [grid.on(b, t) for t in (scale, zero) if t is not None]
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


def ordered(bits: Scalar) -> Scalar:
    """The bits of an f32 as an int32 in the order of the numbers, and the inverse.

    Integers have a maximum of one instruction; that of floats, which cares for NaN and
    the sign of zero, takes six.  NaN lies beyond the infinities: it is not lost.
    """
    return bits ^ ((bits >> 31) & 0x7FFFFFFF)


def extremes(
    b: Builder,
    given: Sequence[Tensor],
    axes: Sequence[int],
    prepare: Callable[[Scalar], Scalar],
) -> list[Tensor]:
    """The largest of zero and given[0] along the axes, the smallest of 0 and given[-1].

    Both are `prepare`d to int32, and reduced in one pass.
    """
    x = given[0]
    kept = [d for d in range(x.rank) if d not in axes]
    place = Map.get(x.rank, 0, [ir.AffineDimExpr.get(d) for d in kept])
    start = [b.full([x.shape[d] for d in kept], 0, INT32) for _ in range(2)]

    def body(*scalars: Scalar) -> Sequence[Scalar]:
        *elements, top, bottom = scalars
        keys = [prepare(s) for s in elements]
        return top.maximum(keys[0]), bottom.minimum(keys[-1])

    return b.generic(
        [(t, Map.get_identity(x.rank)) for t in given],
        [(t, place) for t in start],
        [PARALLEL if d in kept else REDUCTION for d in range(x.rank)],
        body,
    )


def data_range(b: Builder, x: Tensor) -> list[Tensor]:
    """The largest and smallest of zero and all elements, `ordered`."""

    def key(s: Scalar) -> Scalar:
        return ordered(s.bitcast(INT32))

    if not b.checks.is_open:
        x = b.reshape(x, filling(x))
    if x.rank < 2 or x.size == x.shape[-1]:
        return extremes(b, [x], range(x.rank), key)
    rows = extremes(b, [x], [x.rank - 1], key)  # in parallel
    return extremes(b, [b.reshape(t, (t.size,)) for t in rows], [0], lambda s: s)


def filling(x: Tensor) -> tuple[int, ...]:
    """A tensor's shape with rows that fill a vector, if it has as many numbers."""
    *outer, row = x.shape or (1,)
    while outer and row < lanes_of(x.dtype):
        row *= outer.pop()
    return (*outer, row)


def dynamic_quantize(b: Builder, node: Node) -> Sequence[Tensor]:
    """uint8 with the scale and zero point that the data's range asks for.

    One pass over the data for its range, one to quantize it; the rest is a few numbers.
    """
    x, dtype = node.input(0), node.output_dtypes[0]
    most: Number = int(np.iinfo(dtype).max)
    given = data_range(b, x)
    lone = Map.get(0, 0, [])

    def body(*keys: Scalar) -> Sequence[Scalar]:
        top, bottom = (ordered(k).bitcast(FLOAT32) for k in keys[:2])
        width = top - bottom
        step = select(width.equal(0), constant(1, FLOAT32), width) / most
        start = (0 - bottom / step).math("roundeven")
        return step, saturated(start, dtype)

    scale, zero = b.generic(
        [(t, lone) for t in given],
        [(Tensor((), t, b.empty((), t)), lone) for t in (FLOAT32, dtype)],
        [],
        body,
    )
    y = combine(
        b,
        lambda s, by, z: quantized(s, by, FLOAT32, dtype, z),
        x.shape,
        dtype,
        x,
        BroadcastOperand(scale, ()),
        BroadcastOperand(zero, ()),
    )
    return [y, scale, zero]


OPERATORS = {
    "DequantizeLinear": dequantize,
    "DynamicQuantizeLinear": dynamic_quantize,
    "QuantizeLinear": quantize,
}
