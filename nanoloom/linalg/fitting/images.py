"""Whether images fit to what is read of them: blocks, grids, regions, places."""

from __future__ import annotations

from collections.abc import Callable

from nanoloom.linalg.builder.input_checks import at_least, require_shape
from nanoloom.linalg.builder.node import Node


def depth_to_space(node: Node) -> None:
    square = at_least(node, "blocksize", 1) ** 2
    if node.input(0).shape[1] % square:
        raise node.invalid(f"its channels are no multiple of {square}")


def space_to_depth(node: Node) -> None:
    block = at_least(node, "blocksize", 1)
    if any(size % block for size in node.input(0).shape[2:]):
        raise node.invalid(f"its rows or columns are no multiple of {block}")


def local_response(node: Node) -> None:
    at_least(node, "size", 1)


def affine_grid(node: Node) -> None:
    """theta [n, d, d + 1], for a grid [n, ..., d] of d axes."""
    grid = node.output_shapes[0]
    axes = len(grid) - 2
    if axes not in (2, 3):
        raise node.invalid(f"its grid is {list(grid)}, expected one of 2 or 3 axes")
    require_shape(node, 0, [grid[0], axes, axes + 1])


def regions(node: Node) -> None:
    """MaxRoiPool: an image and four corners each."""
    require_shape(node, 1, [node.input(1).size // 5, 5])


def unpooled(node: Node) -> None:
    """One place for each element."""
    require_shape(node, 1, node.input(0).shape)


def resized(node: Node) -> None:
    """An axis without elements cannot be read."""
    x = node.input(0)
    for d, size in enumerate(node.output_shapes[0]):
        if size and not x.shape[d]:
            raise node.invalid(f"its input is {list(x.shape)}: axis {d} has nothing")


RULES: dict[str, Callable[[Node], None]] = {
    "AffineGrid": affine_grid,
    "DepthToSpace": depth_to_space,
    "LRN": local_response,
    "MaxRoiPool": regions,
    "MaxUnpool": unpooled,
    "Resize": resized,
    "SpaceToDepth": space_to_depth,
}
