"""Which convolutions are computed by Winograd's method, and in tiles of how many.

    y = Conv(x, w)  ->  y = Conv<winograd=m>(x, w)        w constant, 3x3, stride 1

A tile of m x m results is made of (m + 2)^2 products instead of 9 m^2, between sums
with small constants (linalg/products/winograd.py).  Results differ from those of the
direct method by rounding (docs/convolutions.md); `exact_conv` keeps the direct one.
Those of integers do not (integer_winograd.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

import onnx_ir as ir

from nanoloom.graph.layout import DOMAIN
from nanoloom.graph.shared_decisions import SharedDecisions
from nanoloom.graph.types import is_static, shape_of
from nanoloom.graph.value_origin import Origin
from nanoloom.target.facts import Target

Shape: TypeAlias = tuple[int, ...]
TILES = (2, 4)  # results along an axis
TAPS = 3
GAIN = 0.9  # of the direct method's time that another one takes, at most
BYTES = 6  # from memory in a cycle of one core
FEW = ((1, 2), (2, 3))  # of a sample's sides have images of few pixels
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


def transform_convolutions(
    graph: ir.Graph, target: Target, alike: SharedDecisions | None = None
) -> None:
    """Mark the convolutions of f32 that are faster by Winograd's method, in place.

    alike: the samples that this graph is one of.
    """
    if alike is None:
        mark_all(graph, tiles_of(graph, target, lambda result: [result]))
        return
    if alike.tiles is None:
        alike.tiles = tiles_of(graph, target, of_any_batch)
        alike.tiles_of_few = tiles_of(graph, target, of_few_pixels)
    mark_all(graph, alike.tiles)


def mark_all(graph: ir.Graph, tiles: Sequence[int | None]) -> None:
    """Mark convolutions, each for its tile."""
    for node, tile in zip(convolutions(graph), tiles, strict=True):
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
    graph: ir.Graph, target: Target, sizes: Callable[[Shape], Sequence[Shape]]
) -> tuple[int | None, ...]:
    """Of each convolution; None for one by the direct method.

    sizes: of the results that count, by a convolution's own.
    """
    lanes = target.lanes(32)
    numbers = Numbers(lanes * target.vector.fma_per_cycle, lanes)

    def tile(node: ir.Node) -> int | None:
        x, w, *_ = node.inputs
        if x is None or w is None or not is_square(node, x, w):
            return None
        if not x.dtype == w.dtype == ir.DataType.FLOAT:
            return None
        results, channels = sizes(shape_of(node.outputs[0])), shape_of(w)[1]
        return best_tile(results, channels, numbers, target, TILES)

    return tuple(map(tile, convolutions(graph)))


def convolutions(graph: ir.Graph) -> list[ir.Node]:
    return [node for node in graph if (node.domain, node.op_type) == (DOMAIN, "Conv")]


def is_square(node: ir.Node, x: ir.Value | None, w: ir.Value | None) -> bool:
    """Whether a convolution of x has constant filters w, 3x3, stride 1, dense."""
    if x is None or w is None or w.const_value is None or not is_static(x):
        return False
    given = node.attributes
    steps = [given[name] for name in ("strides", "dilations") if name in given]
    plain = all(set(step.as_ints()) == {1} for step in steps)
    square = shape_of(w)[2:] == (TAPS, TAPS)
    return plain and square and Origin.of(node).int("group", 1) == 1


def mark(
    node: ir.Node,
    filters: Sequence[int],
    numbers: Numbers,
    target: Target,
    tiles: Sequence[int],
) -> None:
    """Let a channels-last convolution be computed in one of these tiles, if that is
    faster.  filters: their shape."""
    results = [shape_of(node.outputs[0])]
    tile = best_tile(results, filters[1], numbers, target, tiles)
    if tile is not None:
        node.attributes.add(ir.AttrInt64("winograd", tile))


def best_tile(
    results: Sequence[Sequence[int]],
    channels: int,
    numbers: Numbers,
    target: Target,
    tiles: Sequence[int],
) -> int | None:
    """The tile of the fastest way; None if that is the direct one.

    results: [n, h, w, c] of the convolution, for sizes that count alike: what takes
    the least product of times.  channels: of its image.
    """
    if not all(map(prod, results)):
        return None

    def cost(tile: int) -> float:
        return prod(tiled(x, channels, numbers, target, tile) for x in results)

    best = min(tiles, key=cost, default=None)
    usual = prod(GAIN * direct(x, channels, numbers) for x in results)
    return best if best is not None and cost(best) < usual else None


def tiled(
    result: Sequence[int], channels: int, numbers: Numbers, target: Target, tile: int
) -> float:
    """What a convolution takes in such tiles: in products, with what memory takes."""
    n, high, wide, made = result
    worth = numbers.products / BYTES  # products a byte
    points = (tile + TAPS - 1) ** 2
    count = n * -(-high // tile) * -(-wide // tile)
    sums = transform_products(tile)
    whole = -(-channels // numbers.lanes) * numbers.lanes
    moved = sums[0] * whole + numbers.sums * sums[1] * made
    work = count * (points * channels * made + numbers.transforms * moved)
    between = numbers.image * channels + numbers.result * made
    between *= points * count
    passes = PASSES if between > target.caches.l2 * PASSES else 0
    filters = worth * numbers.filters * points * channels * made
    return together(work, filters) + worth * passes * between


def direct(result: Sequence[int], channels: int, numbers: Numbers) -> float:
    """The same by sums of nine products."""
    points = TAPS**2 * channels * result[3]
    filters = numbers.products / BYTES * numbers.kept * points
    return together(prod(result[:3]) * points, filters)


def together(one: float, other: float) -> float:
    """Of what a core does at the same time: most of the shorter is hidden."""
    return max(one, other) + min(one, other) / 4


def transform_products(tile: int) -> tuple[int, int]:
    """Of a tile of one channel of the image, and of one of the result."""
    side = tile + TAPS - 1
    return side * side * (tile + side), tile * side * (side + tile)
