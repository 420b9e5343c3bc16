"""Nodes that are not folded, so that their lowering refuses an index out of range.

ONNX's reference counts some of these from the end, and says nothing of others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir as ir

LOWERED = frozenset(
    (
        "GRU",
        "LSTM",
        "MaxRoiPool",
        "MaxUnpool",
        "NegativeLogLikelihoodLoss",
        "RNN",
        "ReverseSequence",
        "RoiAlign",
        "SoftmaxCrossEntropyLoss",
        "TensorScatter",
    )
)
Extents = Callable[[ir.Node, Sequence[int], int], Sequence[int]]


def gather_axis(node: ir.Node, shape: Sequence[int], depth: int) -> Sequence[int]:
    """The extent of the axis that all indices count along."""
    del depth
    axis = node.attributes.get("axis")
    place = axis.as_int() if axis is not None else 0
    return shape[place : place + 1 or None]


def flattened_indices(node: ir.Node, shape: Sequence[int], depth: int) -> Sequence[int]:
    """The extents behind the batch; the last dimension of the indices has one each."""
    batch = node.attributes.get("batch_dims")
    first = batch.as_int() if batch is not None else 0
    return shape[first : first + depth]


COUNTED: dict[str, Extents] = {
    "Gather": gather_axis,
    "GatherElements": gather_axis,
    "GatherND": flattened_indices,
    "Scatter": gather_axis,
    "ScatterElements": gather_axis,
    "ScatterND": flattened_indices,
}


def may_be_out_of_range(node: ir.Node) -> bool:
    """Whether a node whose inputs are all known may have an index out of range."""
    if node.op_type not in COUNTED:
        return node.op_type in LOWERED
    data, indices = node.inputs[:2]
    assert data is not None and data.const_value is not None
    assert indices is not None and indices.const_value is not None
    array = np.asarray(indices.const_value.numpy()).astype(np.int64)
    depth = array.shape[-1] if array.ndim else 1
    shape = data.const_value.shape.numpy()
    extents = np.array(COUNTED[node.op_type](node, shape, depth), np.int64)
    if len(extents) not in (1, depth):
        return True  # an axis or a depth that there is not
    return bool(((array < -extents) | (array >= extents)).any())
