"""Col2Im: overlapping blocks added up into an image."""

from __future__ import annotations

from math import prod

from nanoloom.graph.shared_decisions import COUNTED
from nanoloom.linalg.builder.builder import Builder
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.overlapping_blocks import Axis, summed
from nanoloom.linalg.builder.tensor import Tensor


def blocks_of(node: Node) -> list[int]:
    """How many blocks stand on each axis of the image."""
    image, block = known(node, 1), known(node, 2)
    rank = len(image)
    dilations = node.ints("dilations", [1] * rank)
    strides = node.ints("strides", [1] * rank)
    pads = node.ints("pads", [0] * 2 * rank)
    if min(*block, *dilations, *strides, 1) < 1:
        raise node.invalid("its sizes, strides and dilations are not all above 0")
    return [
        (image[d] + pads[d] + pads[d + rank] - dilations[d] * (block[d] - 1) - 1)
        // strides[d]
        + 1
        for d in range(rank)
    ]


def col2im(b: Builder, node: Node) -> Tensor:
    """[n, c * block, blocks] to [n, c, *image]: each pixel sums the blocks over it."""
    x, image, block = node.input(0), known(node, 1), known(node, 2)
    rank, (images, channels) = len(image), node.output_shapes[0][:2]
    blocks = blocks_of(node)
    wanted = [images, channels * prod(block), prod(blocks)]
    if min(blocks, default=0) < 0 or list(x.shape) != wanted:
        raise node.invalid(f"its input is {list(x.shape)}, its blocks need {wanted}")
    if x.size == 0 or 0 in image:
        return b.full(node.output_shapes[0], 0, x.dtype)
    strides = node.ints("strides", [1] * rank)
    dilations = node.ints("dilations", [1] * rank)
    pads = node.ints("pads", [0] * 2 * rank)
    axes: list[Axis] = []
    for d, (size, k) in enumerate(zip(image, block, strict=True)):
        steps = -(-size // strides[d])
        if node.int(COUNTED) and strides[d] > 1:  # more than any size needs
            most = (k - 1) * dilations[d] - pads[d] - pads[d + rank]
            steps = blocks[d] + -(-most // strides[d]) + 1
        axes.append(Axis(k, blocks[d], strides[d], dilations[d], pads[d], size, steps))
    apart = b.reshape(x, (images, channels, *block, *blocks))
    return b.cast(summed(b, apart, axes), x.dtype)


def known(node: Node, index: int) -> list[int]:
    found = node.known(index)
    if found is None:
        raise node.unsupported(f"input {index} is missing")
    return [int(size) for size in found]


OPERATORS = {"Col2Im": col2im}
