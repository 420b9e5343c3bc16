"""Which convolutions are computed by Winograd's method, and in tiles of how many.

    y = Conv(x, w)  ->  y = Conv<winograd=m>(x, w)   w constant, 3x3, stride 1 or 2

A tile of m x m results is made of (m + 2)^2 products instead of 9 m^2, of (2m + 1)^2 of
stride 2, between sums with small constants (linalg/products/winograd.py).  Results
differ from those of the direct method by rounding (docs/convolutions.md); `exact_conv`
keeps the direct one.

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
from nanoloom.target.facts import Cache, Target
from nanoloom.target.instructions.choose import dot_for, pair_products

Shape: TypeAlias = tuple[int, ...]
TILES = (2, 4)  # results along an axis
STRIDES = (1, 2)
# Bits of 32 that integers of a tile's results are too large by, by its stride.
LOST = {(2, 1): 2, (4, 1): 6, (2, 2): 0, (4, 2): 2}
TAPS = 3
OF_FLOATS = (ir.DataType.FLOAT, ir.DataType.FLOAT16)  # both are computed in f32
GAIN = 0.9  # of the direct method's time that another one takes, at most
BYTES = 6  # from memory in a cycle of one core
FEW = ((1, 2), (2, 3))  # of a sample's sides have images of few pixels
# Products that writing and reading a group's sums takes, of a few channels each: 10 to
# 27 of groups of 24 and 32 channels, as measured with AVX2.  Those of 16 channels,
# whose direct products fill registers, take 1 to 4 % longer.
SHORT = 16
FEW_CHANNELS = 16
PASSES = 3  # that transformed images and results make: written with a read, read again


@dataclass(frozen=True)
class Numbers:
    """What a convolution is computed in.

    products: in a cycle of one core.  lanes: of an image's channels in a vector.
    filters, image, result: bytes of a transformed number.  kept: bytes of a filter's
    number for the direct method.  sums: products that take as long as one of a result's
    sums.  transforms: the same of any sum around the products.  Without them and lanes
    layers of 3 and 4 channels were made in tiles that took 2 to 7 times as long.
    """

    products: float
    lanes: int
    filters: int = 4
    image: int = 4
    result: int = 4
    kept: int = 4
    sums: int = 1
    transforms: float = 1.2


@dataclass(frozen=True)
class Image:
    """depth: channels that a result reads, of so many groups of them; stride: how far
    from where the next one does."""

    depth: int
    groups: int = 1
    stride: int = 1


@dataclass(frozen=True)
class Candidate:
    """A convolution of x by w, channels last.  fits: a tile and stride, by its sums."""

    x: ir.Value
    w: ir.Value
    numbers: Numbers
    fits: Callable[[int, int], bool] = lambda tile, stride: True


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

        def fits(tile: int, stride: int) -> bool:
            (low, high), limit = found.extremes(), 1 << 31 - LOST[tile, stride]
            return -limit <= low and high < limit

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
        alike.tiles = tiles_of(found, target, of_any_batch)
        alike.tiles_of_few = tiles_of(found, target, of_few_pixels)
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
    _, high, wide, made = result
    return [(1, -(-high * n // d), -(-wide * n // d), made) for n, d in FEW]


def tiles_of(
    convolutions: Mapping[ir.Node, Candidate],
    target: Target,
    sizes: Callable[[Shape], Sequence[Shape]],
) -> tuple[int | None, ...]:
    """Of each convolution; None for one by the direct method.

    sizes: of the results that count, by a convolution's own.
    """

    def tile(node: ir.Node, found: Candidate) -> int | None:
        stride = stride_of(node, found.x, found.w)
        if stride is None:
            return None
        results, depth = sizes(shape_of(node.outputs[0])), shape_of(found.w)[1]
        tiles = [m for m in TILES if found.fits(m, stride)]
        image = Image(depth, Origin.of(node).int("group", 1), stride)
        if image.groups > 1 and depth <= FEW_CHANNELS:
            return None
        return best_tile(results, image, found.numbers, target, tiles)

    return tuple(tile(*each) for each in convolutions.items())


def stride_of(node: ir.Node, x: ir.Value, w: ir.Value) -> int | None:
    """The stride of a convolution of x with constant filters w, 3x3, without gaps.

    None for others, or if it is another one along each axis.
    """
    if w.const_value is None or not is_static(x) or shape_of(w)[2:] != (TAPS, TAPS):
        return None
    given = node.attributes
    gaps = set(given["dilations"].as_ints()) if "dilations" in given else {1}
    strides = set(given["strides"].as_ints()) if "strides" in given else {1}
    return strides.pop() if gaps == {1} and strides in ({s} for s in STRIDES) else None


def best_tile(
    results: Sequence[Sequence[int]],
    image: Image,
    numbers: Numbers,
    target: Target,
    tiles: Sequence[int],
) -> int | None:
    """The tile of the fastest way; None if that is the direct one.

    results: [n, h, w, c] of the convolution, for sizes that count alike: what takes
    the least product of times.
    """
    if not all(map(prod, results)):
        return None

    def cost(tile: int) -> float:
        return prod(tiled(x, image, numbers, target, tile) for x in results)

    best = min(tiles, key=cost, default=None)
    usual = prod(GAIN * direct(x, image.depth, numbers) for x in results)
    return best if best is not None and cost(best) < usual else None


def tiled(
    result: Sequence[int], image: Image, numbers: Numbers, target: Target, tile: int
) -> float:
    """What a convolution takes in such tiles: in products, with what memory takes."""
    n, high, wide, made = result
    worth = numbers.products / BYTES  # products a byte
    points = places_along(tile, image.stride) ** 2
    count = n * -(-high // tile) * -(-wide // tile)
    sums = transform_products(tile, image.stride)
    channels = image.depth * image.groups
    whole = -(-channels // numbers.lanes) * numbers.lanes
    moved = sums[0] * whole + numbers.sums * sums[1] * made
    depth = image.depth + (SHORT if image.groups > 1 else 0)
    work = count * (points * depth * made + numbers.transforms * moved)
    between = numbers.image * channels + numbers.result * made
    between *= points * count
    filters = worth * numbers.filters * points * image.depth * made
    return together(work, filters) + numbers.products * waits(between, target.caches)


def waits(between: int, caches: Cache) -> float:
    """Cycles for which transformed images and results of so many bytes are waited for.

    From the last-level cache, if they take half of it at most; else from memory.
    """
    if between <= caches.l2 * PASSES:
        return 0
    near = 2 * between <= caches.l3
    return PASSES * between * (caches.l3_cycles / caches.line if near else 1 / BYTES)


def direct(result: Sequence[int], depth: int, numbers: Numbers) -> float:
    """The same by sums of nine products of each of so many channels."""
    points = TAPS**2 * depth * result[3]
    filters = numbers.products / BYTES * numbers.kept * points
    return together(prod(result[:3]) * points, filters)


def together(one: float, other: float) -> float:
    """Of what a core does at the same time: most of the shorter is hidden."""
    return max(one, other) + min(one, other) / 4


def transform_products(tile: int, stride: int) -> tuple[int, int]:
    """Of a tile of one channel of the image, and of one of the result.

    Phases of one tap are taken as they are.
    """
    side = places_along(tile, stride)
    phases = [len(range(p, TAPS, stride)) for p in range(stride)]
    image = sum((tile + taps - 1) ** 2 if taps > 1 else tile for taps in phases)
    result = sum(tile * (tile + taps - 1) if taps > 1 else tile for taps in phases)
    return image * (stride * tile + side), result * (side + tile)


def places_along(tile: int, stride: int) -> int:
    """How many products there are along an axis of a tile."""
    return tile * stride + TAPS - stride
