"""Windows over images of few channels that stay in the order that ONNX has.

    MaxPool(x), x [1, 3, 112, 112]:  vectors of pixels, not of three channels

Each channel is computed for itself: pools, and convolutions with a filter a channel.
Vectors of any width hold more channels than such images have.
"""

from __future__ import annotations

import onnx_ir as ir

from nanoloom.graph.editor import transpose_order
from nanoloom.graph.layout_effects import is_tensor_op
from nanoloom.graph.types import shape_of

IN_PLANES = "in_planes"  # of a node
POOLS = frozenset({"AveragePool", "LpPool", "MaxPool"})


def stays_nchw(node: ir.Node) -> bool:
    """Note that a window stays in planes, if that suits it."""
    suits = is_nchw(node)
    if suits:
        node.attributes[IN_PLANES] = ir.AttrInt64(IN_PLANES, 1)
    return suits


def is_nchw(node: ir.Node) -> bool:
    """Whether rows of a window's result are longer than channels, each for itself.

    Not where its image comes with channels last.
    """
    data = node.inputs[0]
    if data is None or transpose_order(data) is not None:
        return False
    _, channels, *_, row = shape_of(node.outputs[0])
    return channels < row and (is_tensor_op(node, POOLS) or is_depthwise(node))


def is_depthwise(node: ir.Node) -> bool:
    """Whether a convolution has one filter for each channel."""
    if not is_tensor_op(node, {"Conv"}) or node.inputs[1] is None:
        return False
    groups = node.attributes.get("group")
    features, parts, *_ = shape_of(node.inputs[1])
    return groups is not None and groups.as_int() == features and parts == 1
