"""Which convolutions are computed by Winograd's method, and in tiles of how many.

    y = Conv(x, w)  ->  y = Conv<winograd=m>(x, w)   w constant, stride 1 or 2, no gaps

m results along each axis of several taps are made of fewer products than taps, between
sums with small constants (winograd_transforms.py): of 3x3 with stride 1 a tile of m x m
of (m + 2)^2 instead of 9 m^2.  Results differ from those of the direct method by
rounding (docs/convolutions.md); `exact_conv` keeps the direct one.

Those of integers are exact.  They are multiplied as 16-bit pairs, which products of
transformed numbers are as well (linalg/products/integer_winograd.py): a target's dot
products of bytes do four times as much.  Sums that are 2^bits times too large must fit
32 bits: what they are at most, the filters say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

import onnx_ir as ir

from nanoloom.graph.integer_convolutions import operands
from nanoloom.graph.layout import DOMAIN
from nanoloom.graph.shared_decisions import SharedDecisions
from nanoloom.graph.types import is_static, shape_of
from nanoloom.graph.value_origin import Origin
from nanoloom.graph.winograd_cost import Axes, Image, Numbers, axes_of, best_tile
from nanoloom.graph.winograd_transforms import integer_transforms, transforms
from nanoloom.target.facts import Target
from nanoloom.target.instructions.choose import dot_for, pair_products

Shape: TypeAlias = tuple[int, ...]
TILES = (2, 4)  # results along an axis
STRIDES = (1, 2)
TAPS = 3  # along both axes, of images whose sizes are open
MOST_GROWTH = 861  # of numbers within the method: that of 4 x 4 results of 3 x 3 taps
LARGEST = 1 << 15  # transformed integers are smaller
OF_FLOATS = (ir.DataType.FLOAT, ir.DataType.FLOAT16)  # both are computed in f32
FEW = ((1, 2), (2, 3))  # of a sample's sides have images of few pixels
# Of a group, which are direct: their products fill registers, and take 1 to 4 % longer
# in tiles.
FEW_CHANNELS = 16
MOST_AXES = 2  # of an image


@dataclass(frozen=True)
class Candidate:
    """A convolution of x by w, channels last.  fits: tiles along axes, by its sums."""

    x: ir.Value
    w: ir.Value
    numbers: Numbers
    fits: Callable[[Axes], bool] = lambda axes: True


Candidates = Callable[[ir.Node], Candidate | None]


def of_floats(target: Target) -> Candidates:
    lanes = target.lanes(32)
    numbers = Numbers(lanes * target.vector.fma_per_cycle, lanes)

    def candidate(node: ir.Node) -> Candidate | None:
        if (node.domain, node.op_type) != (DOMAIN, "Conv"):
            return None
        x, w, *_ = node.inputs
        if x is None or w is None or x.dtype != w.dtype or x.dtype not in OF_FLOATS:
            return None
        return Candidate(x, w, numbers)

    return candidate


def of_integers(target: Target) -> Candidates:
    # Two numbers a lane, but an addition beside each instruction.
    numbers = Numbers(
        target.lanes(32) * target.vector.fma_per_cycle,
        lanes=1, filters=2, image=2, result=4, kept=2, sums=2, transforms=1,
    )  # fmt: skip
    multiplies = pair_products(target) is not None

    def candidate(node: ir.Node) -> Candidate | None:
        found = operands(node) if multiplies else None
        if found is None or dot_for(target, *found.signs) is not None:
            return None

        def fits(axes: Axes) -> bool:
            made = [x for x in map(integer_transforms, axes) if x is not None]
            if len(made) < len(axes):
                return False
            low, high = found.extremes()
            limit = 1 << 31 - sum(x.bits for x in made)
            sums = (
                prod(int(abs(m).sum(1, dtype=int).max()) for m in matrices)
                for matrices in ([x.image for x in made], [x.filters for x in made])
            )
            return 255 * max(sums) < LARGEST and -limit <= low and high < limit

        return Candidate(found.x, found.w, numbers, fits)

    return candidate


def transform_convolutions(
    graph: ir.Graph,
    target: Target,
    candidates: Candidates,
    alike: SharedDecisions | None = None,
) -> None:
    """Mark the convolutions that are faster by Winograd's method, in place.

    alike: the samples that this graph is one of.
    """
    found = {node: each for node in graph if (each := candidates(node)) is not None}
    if alike is None:
        mark_all(found, tiles_of(found, target, lambda result: [result]))
        return
    if alike.tiles is None:
        alike.tiles, alike.tiles_of_few = (
            tiles_of(found, target, sizes, alike.images)
            for sizes in (of_any_batch, of_few_pixels)
        )
    mark_all(found, alike.tiles)


def mark_all(nodes: Iterable[ir.Node], tiles: Sequence[int | None]) -> None:
    """Mark convolutions, each for its tile."""
    for node, tile in zip(nodes, tiles, strict=True):
        if tile is not None:
            node.attributes.add(ir.AttrInt64("winograd", tile))


def of_any_batch(result: Shape) -> list[Shape]:
    """The results that count for a sample's: one image counts as much as several."""
    return [result, (1, *result[1:])]


def of_few_pixels(result: Shape) -> list[Shape]:
    """The same where pixels are few: one image of half the sides, or two thirds."""
    _, *sides, made = result
    return [(1, *(-(-side * n // d) for side in sides), made) for n, d in FEW]


def tiles_of(
    convolutions: Mapping[ir.Node, Candidate],
    target: Target,
    sizes: Callable[[Shape], Sequence[Shape]],
    images: bool = False,
) -> tuple[int | None, ...]:
    """Of each convolution; None for one by the direct method.

    sizes: of the results that count, by a convolution's own.  images: whether images
    may be of any size; only those of 3x3 have programs for all of them.
    """

    def tile(node: ir.Node, found: Candidate) -> int | None:
        windows = windows_of(node, found.x, found.w)
        if windows is None or (images and [t for t, _ in windows] != [TAPS, TAPS]):
            return None
        results, depth = sizes(shape_of(node.outputs[0])), shape_of(found.w)[1]
        image = Image(depth, Origin.of(node).int("group", 1), windows)
        if image.groups > 1 and depth <= FEW_CHANNELS:
            return None
        tiles = [m for m in TILES if is_exact(axes_of(windows, m))]
        tiles = [m for m in tiles if found.fits(axes_of(windows, m))]
        return best_tile(results, image, found.numbers, target, tiles)

    return tuple(tile(*each) for each in convolutions.items())


def windows_of(
    node: ir.Node, x: ir.Value, w: ir.Value
) -> tuple[tuple[int, int], ...] | None:
    """Taps and stride along each axis of a convolution of x with constant filters w.

    None for one with gaps, or in which no two taps are of the same phase.
    """
    if w.const_value is None or not is_static(x):
        return None
    _, _, *taps = shape_of(w)
    given, ones = node.attributes, [1] * len(taps)
    gaps, strides = (
        list(given[name].as_ints()) if name in given else ones
        for name in ("dilations", "strides")
    )
    windows = tuple(zip(taps, strides, strict=True))
    plain = gaps == ones and len(taps) <= MOST_AXES
    fits = all(s in STRIDES and (t > 1 or s == 1) for t, s in windows)
    return windows if plain and fits and any(t > s for t, s in windows) else None


def is_exact(axes: Axes) -> bool:
    """Whether roundings grow no more than is told of the method."""
    if not all(axis.is_known for axis in axes):
        return False
    return prod(transforms(axis).growth for axis in axes) <= MOST_GROWTH
