"""Operators that only give elements another place: reshapes, cuts, joins, repeats."""

from __future__ import annotations

import math
from math import ceil

from nanoloom.errors import ModelError
from nanoloom.linalg.builder.builder import Builder
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.tensor import Tensor


def reshape(b: Builder, node: Node) -> Tensor:
    """Reshape, Flatten, Squeeze, Unsqueeze: inference already said the new shape."""
    x, shape = node.input(0), node.output_shapes[0]
    if math.prod(shape) != x.size:
        raise ModelError(
            f"{x.size} elements cannot take the shape {list(shape)}",
            where=f"node {node.name} ({node.op})",
            hint="give it a shape of as many elements",
        )
    return b.reshape(x, shape)


def identity(b: Builder, node: Node) -> Tensor:
    del b
    return node.input(0)


def transpose(b: Builder, node: Node) -> Tensor:
    x = node.input(0)
    return b.transpose(x, node.ints("perm", range(x.rank - 1, -1, -1)))


def concat(b: Builder, node: Node) -> Tensor:
    parts = [x for x in node.inputs if x is not None]
    return b.concat(parts, node.int("axis", 1))


def append(b: Builder, node: Node) -> Tensor:
    """Rows behind others, which are there already: nothing writes those."""
    x, shape = node.input(0), node.output_shapes[0]
    whole = Tensor(shape, x.dtype, b.empty(shape, x.dtype))
    return b.insert(x, whole, [node.int("at"), *[0] * (x.rank - 1)])


def split(b: Builder, node: Node) -> list[Tensor | None]:
    x = node.input(0)
    axis = node.int("axis") % x.rank
    made: list[Tensor | None] = []
    place = 0
    for size, wanted in zip(split_sizes(node, x.shape[axis]), node.wanted, strict=True):
        starts = [place if d == axis else 0 for d in range(x.rank)]
        shape = [size if d == axis else s for d, s in enumerate(x.shape)]
        made.append(b.slice(x, starts, shape) if wanted else None)
        place += size
    return made


def split_sizes(node: Node, extent: int) -> list[int]:
    """The lengths of the parts: given, or equal with a shorter last one."""
    given = node.known(1)
    if given is not None:
        return [int(size) for size in given]
    if node.has("split"):
        return node.ints("split")
    count = len(node.wanted)
    part = ceil(extent / count)
    return [min(part, max(extent - i * part, 0)) for i in range(count)]


def slice_(b: Builder, node: Node) -> Tensor:
    x = node.input(0)
    starts, steps = [0] * x.rank, [1] * x.rank
    for axis, start, _, step in cuts(node, x.rank):
        place = axis % x.rank
        size = x.shape[place]
        begin = start + size if start < 0 else start
        # A start before the first element counts as the first, also when stepping back
        starts[place] = min(max(begin, 0), size if step > 0 else size - 1)
        steps[place] = step
    return b.slice(x, starts, node.output_shapes[0], steps)


def cuts(node: Node, rank: int) -> list[tuple[int, int, int, int]]:
    """(axis, start, end, step) of each cut; attributes up to opset 9, inputs since."""
    if node.version < 10:
        starts, ends = node.ints("starts"), node.ints("ends")
        axes = node.ints("axes", range(len(starts)))
        return [(a, s, e, 1) for a, s, e in zip(axes, starts, ends, strict=True)]
    first, last = node.known(1), node.known(2)
    if first is None or last is None:
        raise node.unsupported("starts or ends is missing")
    axes, steps = node.known(3), node.known(4)
    count = len(first)
    return [
        (
            int(axes[i]) if axes is not None else i % rank,
            int(first[i]),
            int(last[i]),
            int(steps[i]) if steps is not None else 1,
        )
        for i in range(count)
    ]


def expand(b: Builder, node: Node) -> Tensor:
    return b.broadcast_to(node.input(0), node.output_shapes[0])


def tile(b: Builder, node: Node) -> Tensor:
    """Each dimension d repeated r times is [r, d] broadcast, then seen as one."""
    x = node.input(0)
    shape = node.output_shapes[0]
    if shape == x.shape or 0 in shape:
        return x if shape == x.shape else b.full(shape, 0, x.dtype)
    thin: list[int] = []
    wide: list[int] = []
    for size, whole in zip(x.shape, shape, strict=True):
        if size != whole and size != 1:
            thin, wide = [*thin, 1], [*wide, whole // size]
        thin.append(size)
        wide.append(whole if size == 1 else size)
    return b.reshape(b.broadcast_to(b.reshape(x, thin), wide), shape)


def depth_to_space(b: Builder, node: Node) -> Tensor:
    """[n, c, h, w] to [n, c / k^2, h * k, w * k]."""
    x, k = node.input(0), node.int("blocksize")
    n, c, h, w = x.shape
    if node.string("mode", "DCR") == "DCR":
        apart = b.reshape(x, (n, k, k, c // (k * k), h, w))
        turned = b.transpose(apart, (0, 3, 4, 1, 5, 2))
    else:
        apart = b.reshape(x, (n, c // (k * k), k, k, h, w))
        turned = b.transpose(apart, (0, 1, 4, 2, 5, 3))
    return b.reshape(turned, node.output_shapes[0])


def space_to_depth(b: Builder, node: Node) -> Tensor:
    """[n, c, h, w] to [n, c * k^2, h / k, w / k]."""
    x, k = node.input(0), node.int("blocksize")
    n, c, h, w = x.shape
    apart = b.reshape(x, (n, c, h // k, k, w // k, k))
    order = (
        (0, 3, 5, 1, 2, 4)
        if node.string("mode", "DCR") == "DCR"
        else (0, 1, 3, 5, 2, 4)
    )
    return b.reshape(b.transpose(apart, order), node.output_shapes[0])


OPERATORS = {
    "Append": append,  # graph/append_to_cache.py
    "Concat": concat,
    "DepthToSpace": depth_to_space,
    "Expand": expand,
    "Flatten": reshape,
    "Identity": identity,
    "Reshape": reshape,
    "Slice": slice_,
    "SpaceToDepth": space_to_depth,
    "Split": split,
    "Squeeze": reshape,
    "Tile": tile,
    "Transpose": transpose,
    "Unsqueeze": reshape,
}
