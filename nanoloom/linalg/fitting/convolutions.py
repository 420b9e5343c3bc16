"""Whether the inputs of convolutions fit together: channels, groups, kernels, bias."""

from __future__ import annotations

from math import prod

from nanoloom.linalg.builder.input_checks import at_least, channels_of, require_shape
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.tensor import Tensor
from nanoloom.linalg.builder.window import channels_first


def require_weights(node: Node, index: int, bias: int) -> None:
    """x [n, c, ...], w [f, c / groups, kernel...], bias [f]."""
    w, groups, channels = (
        node.input(index),
        at_least(node, "group", 1),
        channels_of(node),
    )
    require_rank(node, w)
    if channels != w.shape[1] * groups:
        raise node.invalid(
            f"its weights {list(w.shape)} with group {groups} read "
            f"{w.shape[1] * groups} channels, its input has {channels}"
        )
    if w.shape[0] % groups:
        raise node.invalid(f"its {w.shape[0]} filters are not {groups} equal groups")
    require_kernel(node, w)
    require_shape(node, bias, [w.shape[0]])


def require_rank(node: Node, w: Tensor) -> None:
    """Weights have as many dimensions as the input; one of them is in space."""
    x = node.input(0)
    if w.rank != x.rank or x.rank < 3:
        raise node.invalid(
            f"its weights are {list(w.shape)}, its input is {list(x.shape)}: both "
            "have a dimension for channels, one more, and those of space"
        )


def require_kernel(node: Node, w: Tensor) -> None:
    """The attribute `kernel_shape` only repeats what the weights say."""
    given = node.ints("kernel_shape")
    if given and given != list(w.shape[2:]):
        raise node.invalid(
            f"its kernel_shape is {given}, its weights have {list(w.shape[2:])}"
        )


def conv(node: Node) -> None:
    require_weights(node, 1, 2)


def conv_integer(node: Node) -> None:
    require_weights(node, 1, len(node.inputs))
    require_shape(node, 2, [], [1])
    require_shape(node, 3, [], [1], node.input(1).shape[:1])


def qlinear_conv(node: Node) -> None:
    require_weights(node, 3, 8)
    for i in (1, 2, 6, 7):
        require_shape(node, i, [], [1])
    for i in (4, 5):
        require_shape(node, i, [], [1], node.input(3).shape[:1])


def conv_transpose(node: Node) -> None:
    """x [n, c, ...], w [c, f / groups, kernel...], bias [f]."""
    w, groups, channels = node.input(1), at_least(node, "group", 1), channels_of(node)
    require_rank(node, w)
    if channels != w.shape[0]:
        raise node.invalid(
            f"its weights {list(w.shape)} read {w.shape[0]} channels, "
            f"its input has {channels}"
        )
    if channels % groups:
        raise node.invalid(f"its {channels} channels are not {groups} equal groups")
    require_kernel(node, w)
    require_shape(node, 2, [w.shape[1] * groups])


def deform_conv(node: Node) -> None:
    """offset [n, groups * kernel... * rank, result...]; mask the same without rank."""
    require_weights(node, 1, 3)
    groups, channels = at_least(node, "offset_group", 1), channels_of(node)
    if channels % groups:
        raise node.invalid(
            f"its {channels} channels are not {groups} equal groups of offsets"
        )
    kernel = node.input(1).shape[2:]
    result = node.output_shapes[0][2:] if channels_first(node) else ()
    result = result or node.output_shapes[0][1:-1]
    taps, n = groups * prod(kernel), node.input(0).shape[0]
    require_shape(node, 2, [n, taps * len(kernel), *result])
    require_shape(node, 4, [n, taps, *result])


RULES = {
    "Conv": conv,
    "ConvInteger": conv_integer,
    "Convolution": conv_integer,
    "ConvTranspose": conv_transpose,
    "DeformConv": deform_conv,
    "QLinearConv": qlinear_conv,
}
