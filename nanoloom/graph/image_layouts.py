"""The orders of an image's dimensions: channels first, as ONNX has them, and last."""

from __future__ import annotations

import onnx_ir as ir

from nanoloom.graph.editor import transpose_order


def to_last(rank: int) -> list[int]:
    """NCHW -> NHWC."""
    return [0, *range(2, rank), 1]


def to_first(rank: int) -> list[int]:
    """NHWC -> NCHW."""
    return [0, rank - 1, *range(1, rank - 1)]


def by_channel(node: ir.Node) -> bool:
    """Whether a BatchNormalization has one number for each channel, not each element.

    Those of version 7 with spatial = 0 do not.
    """
    spatial = node.attributes.get("spatial")
    return spatial is None or bool(spatial.as_int())


def image_order(value: ir.Value | None) -> list[int] | None:
    """The permutation that a value comes through, if that is from channels last."""
    order = transpose_order(value)
    return order if order is not None and order == to_first(len(order)) else None
