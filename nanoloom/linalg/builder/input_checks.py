"""What a node's inputs must be: each refuses in one sentence what does not fit."""

from __future__ import annotations

from collections.abc import Sequence

from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.window import takes_planes

Shape = Sequence[int]


def require_shape(node: Node, index: int, *shapes: Shape) -> None:
    """An input, if it is given, has one of these shapes."""
    x = node.optional(index)
    if x is not None and not any(x.shape == tuple(shape) for shape in shapes):
        wanted = " or ".join(str(list(shape)) for shape in shapes)
        raise node.invalid(f"its input {index} is {list(x.shape)}, expected {wanted}")


def require_spread(node: Node, index: int, shape: Shape) -> None:
    """An input, if it is given, can be broadcast to a shape."""
    x = node.optional(index)
    if x is None:
        return
    ends = zip(reversed(x.shape), reversed(shape), strict=False)
    if len(x.shape) > len(shape) or any(d not in (1, size) for d, size in ends):
        raise node.invalid(
            f"its input {index} is {list(x.shape)}, which does not spread over "
            f"{list(shape)}"
        )


def require_axis(node: Node, default: int = 0) -> None:
    """The attribute `axis` is a dimension of the first input."""
    require_axes(node, [node.int("axis", default)])


def require_axes(node: Node, axes: Sequence[int]) -> None:
    """Each is a dimension of the first input."""
    rank = node.input(0).rank
    for axis in axes:
        if not -rank <= axis < rank:
            raise node.invalid(f"its axis is {axis}, its input has {rank} dimensions")


def at_least(node: Node, name: str, least: int, default: int = 1) -> int:
    """An integer attribute."""
    value = node.int(name, default)
    if value < least:
        raise node.invalid(f"its {name} is {value}, expected {least} or more")
    return value


def channels_of(node: Node) -> int:
    """How many channels the first input has; it has a batch and channels at least."""
    if node.input(0).rank < 2:
        shape = list(node.input(0).shape)
        raise node.invalid(f"its input is {shape}, expected [n, channels, ...]")
    return node.input(0).shape[1 if takes_planes(node) else -1]
