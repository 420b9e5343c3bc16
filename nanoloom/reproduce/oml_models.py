"""The layers that the OML-vect paper measures, by their dimensions, weights seeded.

Attention: projections, scores, softmax, what they weigh, another projection, the sum
with the input, layer normalization.  Or a product in front of a GRU.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Layer:
    """A layer's dimensions.  heads: 0 for a GRU behind a product."""

    name: str
    hidden: int
    heads: int
    rows: int = 128

    @property
    def size(self) -> str:
        return f"{self.rows}x{self.hidden}"


# Layers of BERT, DistilBERT and RoBERTa have the same dimensions.
LAYERS = (
    Layer("bert-base", 768, 12),
    Layer("bge-small", 384, 12),
    Layer("transformer", 512, 8),
    Layer("nsnet2", 400, 0, 64),
)
QUICK = (Layer("tiny", 36, 3, 7), Layer("tiny-gru", 20, 0, 5))


def draw(layer: Layer, seed: int = 0) -> dict[str, Array]:
    """The input x and all weights, f32."""
    random, width = np.random.default_rng(seed), layer.hidden

    def normal(*shape: int) -> Array:
        return random.standard_normal(shape).astype(np.float32)

    found = {"x": normal(layer.rows, width)}
    if layer.heads:
        for name in "qkvo":
            found[f"w{name}"] = normal(width, width) / np.float32(width**0.5)
            found[f"b{name}"] = normal(width)
        return found | {"scale": normal(width), "shift": normal(width)}
    found["wi"] = normal(width, width) / np.float32(width**0.5)
    found["bi"] = normal(width)
    found["w"] = normal(1, 3 * width, width) / np.float32(width**0.5)
    found["r"] = normal(1, 3 * width, width) / np.float32(width**0.5)
    return found


def model_of(layer: Layer, numbers: Mapping[str, Array]) -> onnx.ModelProto:
    """The layer as ONNX."""
    nodes = attention() if layer.heads else recurrence(layer)
    held = {name: array for name, array in numbers.items() if name != "x"}
    held |= sizes(layer)
    shape = numbers["x"].shape
    graph = helper.make_graph(
        nodes,
        layer.name,
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)],
        [onnx.ValueInfoProto(name="y")],
        [numpy_helper.from_array(array, name) for name, array in held.items()],
    )
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9
    )


def sizes(layer: Layer) -> dict[str, Array]:
    """Shapes and factors that the nodes read."""
    if not layer.heads:
        return {"steps": np.array([layer.rows, 1, layer.hidden])}
    depth = layer.hidden // layer.heads
    return {
        "by_heads": np.array([layer.rows, layer.heads, depth]),
        "by_rows": np.array([layer.rows, layer.hidden]),
        "factor": np.array(depth**-0.5, np.float32),
    }


def attention() -> list[onnx.NodeProto]:
    node = helper.make_node
    nodes: list[onnx.NodeProto] = []
    for name, order in (("q", [1, 0, 2]), ("k", [1, 2, 0]), ("v", [1, 0, 2])):
        nodes += [
            node("Gemm", ["x", f"w{name}", f"b{name}"], [f"{name}_flat"]),
            node("Reshape", [f"{name}_flat", "by_heads"], [f"{name}_heads"]),
            node("Transpose", [f"{name}_heads"], [name], perm=order),
        ]
    return [
        *nodes,
        node("MatMul", ["q", "k"], ["scores"]),
        node("Mul", ["scores", "factor"], ["scaled"]),
        node("Softmax", ["scaled"], ["shares"], axis=-1),
        node("MatMul", ["shares", "v"], ["weighed"]),
        node("Transpose", ["weighed"], ["turned"], perm=[1, 0, 2]),
        node("Reshape", ["turned", "by_rows"], ["joined"]),
        node("Gemm", ["joined", "wo", "bo"], ["projected"]),
        node("Add", ["projected", "x"], ["sum"]),
        node("LayerNormalization", ["sum", "scale", "shift"], ["y"]),
    ]


def recurrence(layer: Layer) -> list[onnx.NodeProto]:
    node = helper.make_node
    return [
        node("Gemm", ["x", "wi", "bi"], ["product"]),
        node("Reshape", ["product", "steps"], ["sequence"]),
        node("GRU", ["sequence", "w", "r"], ["y"], hidden_size=layer.hidden),
    ]
