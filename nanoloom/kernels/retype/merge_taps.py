"""Convolutions of few channels as sums over rows of taps with their channels.

    y[o, f] = sum over k, t, c of x[o + k, s o' + t, c] * w[f, c, k, t]
      ->      sum over k, u of    x[o + k, s C o' + u] * w[f, k, u]    u = C t + c

The first layer of a network has three channels: too few numbers for instructions that
take several at once, while those of neighbouring pixels lie side by side.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from nanoloom.ir.linalg_query import Op, extents, inputs, iterators, map_dims, maps
from nanoloom.ir.loop_nest import indices
from nanoloom.ir.make_generic import make_generic
from nanoloom.ir.mlir import ir, linalg, tensor
from nanoloom.kernels.retype.retyped import Retyped
from nanoloom.nest.index import Index
from nanoloom.weights.derivations import Reshaped, Transposed
from nanoloom.weights.weight import Weight


@dataclass(frozen=True)
class RowsOfTaps:
    """A product whose last two sums, over taps and channels, can be one.

    image: its operand with pixels that lie side by side, place 0.  weight: place 1, its
    dimensions by the product's.  pixel: where a pixel of a row is read.
    """

    op: Op
    weight: Weight
    dims: tuple[int, ...]
    pixel: Index

    @property
    def channels(self) -> int:
        return extents(self.op)[-1]

    @property
    def together(self) -> int:
        """Numbers of a sum that lie side by side."""
        return prod(extents(self.op)[-2:])


def rows_of_taps(op: Op, narrow: Retyped) -> RowsOfTaps | None:
    """None where the last two loops are not a row's taps, and all of the channels."""
    kinds, size = iterators(op), extents(op)
    image, right = inputs(op)
    weight = narrow.parameter_of(right)
    if weight is None or kinds[-2:] != ["reduction"] * 2:
        return None
    *_, tap, channel = (str(d) for d in range(len(size)))
    read = indices(maps(op)[0], [str(d) for d in range(len(size))])
    known = [d for d in map_dims(maps(op)[1]) if d is not None]
    whole = ir.RankedTensorType(image.type).shape[-1] == size[-1]
    if len(read) < 2 or not whole or read[-1].axis != channel:
        return None
    pixel = read[-2]
    apart = all(not {tap, channel} & {*x.axes} for x in read[:-2])
    taps = len(pixel.axes) > 1 and pixel.factor(tap) == 1 and not pixel.other
    if not (apart and taps) or len(known) != len(weight.shape):
        return None
    fits = {len(size) - 2, len(size) - 1} <= {*known} and channel not in pixel.axes
    return RowsOfTaps(op, weight, tuple(known), pixel) if fits else None


def in_rows(found: RowsOfTaps, narrow: Retyped) -> Op:
    """The same product over rows of taps, in place of the first one."""
    op, size = found.op, extents(found.op)
    count, channels = len(size) - 1, found.channels
    *outer, _, _ = maps(op)[0].results
    along: ir.AffineExpr = ir.AffineConstantExpr.get(found.pixel.offset * channels)
    for axis, factor in found.pixel.terms:
        apart = 1 if int(axis) == count - 1 else factor * channels
        along = along + ir.AffineDimExpr.get(int(axis)) * apart
    order = sorted(d for d in found.dims if d < count - 1)
    shape = [*(size[d] for d in order), found.together]
    places = [found.dims.index(d) for d in (*order, count - 1, count)]
    weight = found.weight.then(Transposed(tuple(places))).then(Reshaped(tuple(shape)))
    w_map = [ir.AffineDimExpr.get(d) for d in (*order, count - 1)]
    ways = [[*outer, along], w_map, list(maps(op)[2].results)]
    with ir.InsertionPoint(op), op.operation.location:
        operands = [flat_rows(inputs(op)[0]), narrow.parameter(weight)]
        before = op.operation.operands[2]
        indexings = [ir.AffineMap.get(count, 0, way) for way in ways]
        made = make_generic(operands, [before], indexings, iterators(op)[:count])
        # The body is made anew with the numbers' type (Retyped.sum_of).
        block = made.operation.regions[0].blocks[0]
        with ir.InsertionPoint(block):
            linalg.YieldOp([block.arguments[2]])
    op.operation.results[0].replace_all_uses_with(made.operation.results[0])
    op.operation.erase()
    return made


def flat_rows(image: ir.Value) -> ir.Value:
    """An image whose pixels of a row are one dimension with their channels."""
    kind = ir.RankedTensorType(image.type)
    *outer, wide, channels = kind.shape
    rank = len(outer) + 1
    groups = [[d] for d in range(rank - 1)] + [[rank - 1, rank]]
    made = ir.RankedTensorType.get([*outer, wide * channels], kind.element_type)
    return tensor.collapse_shape(made, image, groups)
