"""Col2Im: overlapping blocks added up into an image."""

from __future__ import annotations

from math import prod

from nanoloom.linalg.builder.builder import PARALLEL, REDUCTION, Builder, computed_as
from nanoloom.linalg.builder.indexing import dims, position
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.scalar import BOOL, Scalar, constant, select
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
    """[n, c * block, blocks] to [n, c, *image]: each pixel sums the blocks over it.

    Pixel i is at place k of block l where i + pad = l * stride + k * dilation.
    """
    x, image, block = node.input(0), known(node, 1), known(node, 2)
    rank = len(image)
    shape = node.output_shapes[0]
    dilations = node.ints("dilations", [1] * rank)
    strides = node.ints("strides", [1] * rank)
    pads = node.ints("pads", [0] * 2 * rank)
    blocks = blocks_of(node)
    wanted = [shape[0], shape[1] * prod(block), prod(blocks)]
    if min(blocks, default=0) < 0 or list(x.shape) != wanted:
        raise node.invalid(f"its input is {list(x.shape)}, its blocks need {wanted}")
    apart = b.reshape(x, (shape[0], shape[1], prod(block), prod(blocks)))
    source = b.value(apart)

    def body(_: Scalar, sum_: Scalar) -> Scalar:
        inside = constant(True, BOOL)
        place, number = position(0) * 0, position(0) * 0
        for d in range(rank):
            k = position(2 + rank + d)
            shifted = position(2 + d) + pads[d] - k * dilations[d]
            at = shifted / strides[d]
            exact = (at * strides[d]).equal(shifted)
            inside = inside & exact & (shifted >= 0) & (at < blocks[d])
            place = place * block[d] + k
            number = number * blocks[d] + at
        safe = select(inside, number, 0)
        element = b.load(source, x.dtype, [position(0), position(1), place, safe])
        return sum_ + select(inside, element, 0)

    wide = computed_as(x.dtype)
    extents = Tensor(tuple(block), x.dtype, b.empty(block, x.dtype))
    loops = 2 + 2 * rank
    summed = b.generic(
        [(extents, dims(loops, range(2 + rank, loops)))],
        [(b.full(shape, 0, wide), dims(loops, range(2 + rank)))],
        [PARALLEL] * (2 + rank) + [REDUCTION] * rank,
        body,
    )[0]
    return b.cast(summed, x.dtype)


def known(node: Node, index: int) -> list[int]:
    found = node.known(index)
    if found is None:
        raise node.unsupported(f"input {index} is missing")
    return [int(size) for size in found]


OPERATORS = {"Col2Im": col2im}
