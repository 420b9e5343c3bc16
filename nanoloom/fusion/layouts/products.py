"""Products of an activation with weights: what a choice of layouts is about."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import takewhile
from math import prod

from nanoloom.fusion.layouts.links import Dim, axis, shape_of
from nanoloom.ir.contraction import analyse
from nanoloom.ir.linalg_query import (
    Op,
    base,
    element_bytes,
    extents,
    inputs,
    is_copy,
    iterators,
    map_dims,
    maps,
    outputs,
)
from nanoloom.ir.loop_nest import alone
from nanoloom.ir.mlir import ir
from nanoloom.nest.contraction import bits
from nanoloom.nest.granularity import JAMMED, MOST_WRITTEN

# Of dense layers that go by two pixels: 5x5 and 7x7 take 1.03 and 1.05 of the time of
# channels last and turning back, 3x3 0.78, measured with AVX-512.
MOST_BY_TWO = 9


@dataclass(frozen=True)
class Product:
    """A contraction of an activation with weights, or a pool of it.

    image: the activation, operand: its number.  parts, features: the axes of the
    channels that are summed, and of those that are made; of a depthwise convolution
    they are one.  is_window: whether neighbours of a pixel are read, too.
    """

    op: Op
    image: ir.Value
    operand: int
    parts: Dim
    features: Dim
    is_window: bool

    @property
    def is_depthwise(self) -> bool:
        return self.parts == self.features

    @property
    def slides(self) -> bool:
        """Whether windows of some taps go along rows of pixels, by one or two: vectors
        may be of pixels then, and planes stay apart.

        Not along a single row of a dense layer, nor by two without a tap along rows.
        """
        stage = alone(self.op)
        *rows, row, _ = stage.reads[self.operand].indices
        parallel = {axis.name for axis in stage.axes if not axis.is_reduction}
        along = [name for name in row.axes if name in parallel]
        single = not any(parallel & {*index.axes} for index in rows)
        if single and not self.is_depthwise:
            return False
        taps = prod(
            n
            for n, a in zip(extents(self.op), stage.axes, strict=True)
            if a.is_reduction
        )
        taps //= 1 if self.is_depthwise else shape_of(self.image)[-1]
        steps = [row.factor(name) for name in along]
        every = steps == [1] or self.is_depthwise
        most = MOST_WRITTEN // JAMMED if every else MOST_BY_TWO
        fits = steps == [1] or (steps == [2] and len(row.axes) > len(along))
        return self.is_window and fits and taps <= most

    @property
    def step(self) -> int:
        """How many pixels windows go along a row at a time."""
        stage = alone(self.op)
        *_, row, _ = stage.reads[self.operand].indices
        pixels = {axis.name for axis in stage.axes if not axis.is_reduction}
        return max((row.factor(x) or 0 for x in pixels & {*row.axes}), default=1)

    @property
    def rows_summed(self) -> int:
        """How many rows of pixels a sum reads, of all channels."""
        stage = alone(self.op)
        *_, row, _ = stage.reads[self.operand].indices
        pairs = zip(extents(self.op), stage.axes, strict=True)
        return prod(n for n, a in pairs if a.is_reduction and a.name not in row.axes)

    @property
    def pixels_in_vectors(self) -> int:
        """How many pixels of the result lie in a row, where its channels are first: of
        the image, or those that weights make of one (transposed convolutions)."""
        image, result = (map_dims(maps(self.op)[n]) for n in (self.operand, -1))
        pixels = result[-2::-1]
        of_image = pixels[:1] != [] and pixels[0] in image
        along = takewhile(lambda d: (d in image) == of_image, pixels)
        return prod(extents(self.op)[d] for d in along if d is not None)

    @property
    def macs(self) -> int:
        return prod(extents(self.op))


def product_of(op: Op, weights: Collection[ir.Value]) -> Product | None:
    """A contraction whose layouts are a choice; None for others.

    weights: the function's parameters.
    """
    operands, ways = inputs(op), maps(op)
    constant = [is_weight(value, weights) for value in operands]
    kinds = [ir.RankedTensorType(value.type).element_type for value in operands]
    if sum(constant) != 1:
        return None
    at = constant.index(False)
    image, weight, result = (map_dims(ways[n]) for n in (at, 1 - at, 2))
    if not image or not result or image[-1] is None or result[-1] is None:
        return None
    parts, features = image[-1], result[-1]
    if not {parts, features} <= {*weight}:
        return None  # a transform of an image: its channels are not multiplied
    dense = iterators(op)[parts] == "reduction" and features not in image
    if not (dense and analyse(op) is not None) and parts != features:
        return None
    depthwise = parts == features and all(isinstance(k, ir.FloatType) for k in kinds)
    if not depthwise and any(k.width < bits("f32") for k in kinds):  # type: ignore[attr-defined] - all types of numbers have it
        return None
    if {*image} & {*weight} & {*result} - {None, features}:
        return None  # in groups: each has a few channels, side by side
    return Product(
        op, operands[at], at, axis(op, parts), axis(op, features), None in image
    )


def pool_of(op: Op) -> Product | None:
    """A reduction over windows of each channel, as a depthwise layer without weights;
    None for others."""
    (result, *more), kinds = outputs(op), iterators(op)
    found = [n for n, way in enumerate(maps(op)[:-1]) if None in map_dims(way)]
    if more or len(found) != 1:
        return None
    image, made = map_dims(maps(op)[found[0]]), map_dims(maps(op)[-1])
    channels = image[-1]
    if channels is None or channels != made[-1] or kinds[channels] == "reduction":
        return None
    if element_bytes(result.type) < bits("f32") // bits("u8"):
        return None
    one = axis(op, channels)
    return Product(op, inputs(op)[found[0]], found[0], one, one, is_window=True)


def is_weight(value: ir.Value, weights: Collection[ir.Value]) -> bool:
    """Whether a value is a parameter, in any shape or order."""
    value = base(value)
    while not isinstance(owner := value.owner, ir.Block) and is_copy(owner.opview):
        value = base(inputs(owner.opview)[0])
    return value in weights
