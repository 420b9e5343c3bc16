"""What a convolution takes by Winograd's method, and by sums of products."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

from nanoloom.graph.winograd_transforms import Filtering
from nanoloom.target.facts import Cache, Target

Axes: TypeAlias = tuple[Filtering, ...]
GAIN = 0.9  # of the direct method's time that another one takes, at most
BYTES = 6  # from memory in a cycle of one core
# Products that writing and reading a group's sums takes, of a few channels each: 10 to
# 27 of groups of 24 and 32 channels, as measured with AVX2.
SHORT = 16
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
    """depth: channels that a result reads, of so many groups of them; windows: the taps
    along each axis, and the stride."""

    depth: int
    groups: int = 1
    windows: tuple[tuple[int, int], ...] = ((3, 1), (3, 1))


def axes_of(windows: Sequence[tuple[int, int]], tile: int) -> Axes:
    """Tiles of so many results along each axis of several taps."""
    return tuple(Filtering(tile if taps > 1 else 1, taps, s) for taps, s in windows)


def best_tile(
    results: Sequence[Sequence[int]],
    image: Image,
    numbers: Numbers,
    target: Target,
    tiles: Sequence[int],
) -> int | None:
    """The tile of the fastest way; None if that is the direct one.

    results: [n, sides..., c] of the convolution, for sizes that count alike: what takes
    the least product of times.
    """
    if not all(map(prod, results)):
        return None

    def cost(tile: int) -> float:
        return prod(tiled(x, image, numbers, target, tile) for x in results)

    best = min(tiles, key=cost, default=None)
    usual = prod(GAIN * direct(x, image, numbers) for x in results)
    return best if best is not None and cost(best) < usual else None


def tiled(
    result: Sequence[int], image: Image, numbers: Numbers, target: Target, tile: int
) -> float:
    """What a convolution takes in such tiles: in products, with what memory takes."""
    (n, *sides, made), axes = result, axes_of(image.windows, tile)
    worth = numbers.products / BYTES  # products a byte
    points = prod(axis.places for axis in axes)
    count = n * prod(-(-s // axis.tile) for s, axis in zip(sides, axes, strict=True))
    sums = transform_products(axes)
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


def direct(result: Sequence[int], image: Image, numbers: Numbers) -> float:
    """The same by sums of the products of all taps and channels."""
    points = prod(taps for taps, _ in image.windows) * image.depth * result[-1]
    filters = numbers.products / BYTES * numbers.kept * points
    return together(prod(result[:-1]) * points, filters)


def together(one: float, other: float) -> float:
    """Of what a core does at the same time: most of the shorter is hidden."""
    return max(one, other) + min(one, other) / 4


def transform_products(axes: Axes) -> tuple[int, int]:
    """Of a tile of one channel of the image, and of one of the result: along each axis
    for what those before have made, and those behind have not yet.

    Phases of one tap are taken as they are.
    """
    image = result = 0
    for k, axis in enumerate(axes):
        before, behind = axes[:k], axes[k + 1 :]
        phases = [(axis.tile + taps - 1, taps) for taps in axis.phases if axis.taps > 1]
        of_image = sum(side**2 if taps > 1 else side for side, taps in phases)
        of_result = sum(axis.tile * side if t > 1 else side for side, t in phases)
        image += (
            of_image * prod(x.places for x in before) * prod(x.step for x in behind)
        )
        result += (
            of_result * prod(x.tile for x in before) * prod(x.places for x in behind)
        )
    return image, result
