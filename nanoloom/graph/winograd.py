"""Which convolutions are computed by Winograd's method, and in tiles of how many.

    y = Conv(x, w)  ->  y = Conv<winograd=m>(x, w)        w constant, 3x3, stride 1

A tile of m x m results is made of (m + 2)^2 products instead of 9 m^2, between sums
with small constants (linalg/products/winograd.py).  Results differ from those of the
direct method by rounding (docs/convolutions.md); `exact_conv` keeps the direct one.
"""

from __future__ import annotations

from math import prod

import onnx_ir as ir

from nanoloom.graph.layout import DOMAIN
from nanoloom.graph.origin import Origin
from nanoloom.graph.types import is_static, shape_of
from nanoloom.target.facts import Target

TILES = (2, 4)  # results along an axis
TAPS = 3
GAIN = 0.9  # of the direct method's time that another one takes, at most
BYTES = 6  # from memory in a cycle of one core
PASSES = 3  # that transformed images and results make: written with a read, read again


def transform_convolutions(graph: ir.Graph, target: Target) -> None:
    """Mark the convolutions that are faster by Winograd's method, in place."""
    for node in graph:
        if is_candidate(node):
            tile = best_tile(node, target)
            if tile is not None:
                node.attributes.add(ir.AttrInt64("winograd", tile))


def is_candidate(node: ir.Node) -> bool:
    """A channels-last f32 convolution with constant filters, 3x3, stride 1, dense."""
    if (node.domain, node.op_type) != (DOMAIN, "Conv"):
        return False
    x, w, *_ = node.inputs
    if x is None or w is None or w.const_value is None or not is_static(x):
        return False
    given = node.attributes
    steps = [given[name] for name in ("strides", "dilations") if name in given]
    plain = all(set(step.as_ints()) == {1} for step in steps)
    square = shape_of(w)[2:] == (TAPS, TAPS)
    single = Origin.of(node).int("group", 1) == 1
    return plain and square and single and x.dtype == w.dtype == ir.DataType.FLOAT


def best_tile(node: ir.Node, target: Target) -> int | None:
    """The tile of the fastest way; None if that is the direct one."""
    w, y = node.inputs[1], node.outputs[0]
    assert w is not None
    (n, high, wide, made), channels = shape_of(y), shape_of(w)[1]
    lanes = target.vector.min_bits // 32
    worth = lanes * target.vector.fma_per_cycle / BYTES  # products a byte

    def cost(tile: int) -> float:
        """In products, with what memory takes."""
        points = (tile + TAPS - 1) ** 2
        tiles = n * -(-high // tile) * -(-wide // tile)
        sums = transform_products(tile)
        work = tiles * (points * channels * made + sums[0] * channels + sums[1] * made)
        between = 4 * points * tiles * (channels + made)
        passes = PASSES if between > target.caches.l2 * PASSES else 0
        return together(work, filters(points)) + worth * passes * between

    def filters(points: int) -> float:
        return worth * 4 * points * channels * made

    direct = n * high * wide * TAPS**2 * channels * made
    direct = together(direct, filters(TAPS**2))
    best = min(TILES, key=cost)
    return best if prod((n, high, wide)) and cost(best) < GAIN * direct else None


def together(one: float, other: float) -> float:
    """Of what a core does at the same time: most of the shorter is hidden."""
    return max(one, other) + min(one, other) / 4


def transform_products(tile: int) -> tuple[int, int]:
    """Of a tile of one channel of the image, and of one of the result."""
    side = tile + TAPS - 1
    return side * side * (tile + side), tile * side * (side + tile)
