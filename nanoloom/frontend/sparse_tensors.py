"""Sparse tensors become dense ones, as ONNX Runtime makes them: weights and constants.

    values [5, 7], indices [1, 4], dims [2, 3]  ->  [[0, 5, 0], [0, 7, 0]]

indices: of the flattened tensor, or a row of them for each value.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import onnx
import onnx_ir as ir
from onnx import numpy_helper

from nanoloom.errors import ModelError
from nanoloom.frontend.memory_claims import available_memory, byte_size, in_words
from nanoloom.frontend.proto_walk import bodies, normal, walk
from nanoloom.frontend.tensors import AGAIN, Weights, checked_tensor

MESSAGE = 2**31 - 1  # bytes that a tensor in a message may have


def make_dense(model: onnx.ModelProto, weights: Weights, where: str) -> None:
    """Sparse weights and the sparse values of Constant as dense ones, in place.

    Raises ModelError for indices that are not places of their own in the tensor.
    """
    make_weights_dense(model.graph, weights, where)
    for nodes in (model.graph.node, *(f.node for f in model.functions)):
        for node, at in walk(nodes, where):
            for body in bodies(node):
                make_weights_dense(body, weights, at)
            if normal(node.domain) == "" and node.op_type == "Constant":
                make_constant_dense(node, weights, at)


def make_weights_dense(graph: onnx.GraphProto, weights: Weights, where: str) -> None:
    for sparse in graph.sparse_initializer:
        at = f"{where}: weight {sparse.values.name}"
        graph.initializer.append(dense(sparse, weights, at))
    del graph.sparse_initializer[:]


def make_constant_dense(node: onnx.NodeProto, weights: Weights, where: str) -> None:
    for attribute in node.attribute:
        if attribute.name == "sparse_value" and attribute.HasField("sparse_tensor"):
            at = f"{where}, attribute {attribute.name}"
            attribute.t.CopyFrom(dense(attribute.sparse_tensor, weights, at))
            attribute.ClearField("sparse_tensor")
            attribute.name = "value"
            attribute.type = onnx.AttributeProto.TENSOR


def dense(
    sparse: onnx.SparseTensorProto, weights: Weights, where: str
) -> onnx.TensorProto:
    """The tensor with zeros written, by the name of its values."""

    def require(holds: bool, text: Callable[[], str]) -> None:
        if not holds:
            raise ModelError(text(), where=where, hint=AGAIN)

    dims, name = list(sparse.dims), sparse.values.name
    kind = sparse.values.data_type
    require(all(d >= 0 for d in dims), lambda: f"has a negative dimension in {dims}")
    require(kind != ir.DataType.STRING, lambda: "has sparse strings")
    values = array_of(sparse.values, weights, f"{where}, its values")
    places = array_of(sparse.indices, weights, f"{where}, its indices")
    require(values.ndim == 1, lambda: f"has values of shape {list(values.shape)}")
    require(places.dtype == np.int64, lambda: f"has indices of type {places.dtype}")
    shapes = ((len(values),), (len(values), len(dims)))
    require(
        places.shape in shapes,
        lambda: f"has indices of shape {list(places.shape)} for {len(values)} values",
    )
    need = byte_size([d or 1 for d in dims], ir.DataType(kind))
    free = min(available_memory(), MESSAGE)
    require(
        need <= free, lambda: f"needs {in_words(need)}, {in_words(free)} can be had"
    )
    ends = dims if places.ndim == 2 else [math.prod(dims)]
    inside = np.all((places >= 0) & (places < ends))
    require(bool(inside), lambda: f"has an index outside of its shape {dims}")
    flat = places
    if places.ndim == 2:
        flat = np.asarray(np.ravel_multi_index(tuple(places.T), dims))
    require(np.unique(flat).size == flat.size, lambda: "has an index twice")
    made = np.zeros(math.prod(dims), values.dtype)
    made[flat] = values
    tensor = numpy_helper.from_array(made.reshape(dims), name)
    tensor.data_type = kind
    return tensor


def array_of(tensor: onnx.TensorProto, weights: Weights, where: str) -> np.ndarray:
    """The elements of a tensor, wherever they are."""
    found = checked_tensor(tensor, weights, where)
    return numpy_helper.to_array(tensor) if found is None else found.numpy()
