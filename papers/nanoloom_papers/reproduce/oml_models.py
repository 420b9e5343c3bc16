"""The layers that the OML-vect paper measures, by their dimensions, weights seeded.

Attention: projections, scores, softmax, what they weigh, another projection, the sum
with the input, layer normalization, each form as its exporter writes it.  Or a product
in front of a GRU.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import onnx
from onnx import helper, numpy_helper

from nanoloom_papers.reproduce.oml_relative import content_and_places, places_of

Array = np.ndarray[Any, np.dtype[Any]]
# How scores come about: scaled and a mask added (bert); queries scaled and places
# excluded (distilbert); scaled only (plain); besides, keys and queries of relative
# places (deberta).  Or no scores: a product and a GRU.
Form = Literal["bert", "distilbert", "plain", "deberta", "gru"]
node = helper.make_node


@dataclass(frozen=True)
class Layer:
    """A layer's dimensions.  span: of relative places, to each side."""

    name: str
    hidden: int
    heads: int
    form: Form = "bert"
    rows: int = 128
    span: int = 0

    @property
    def size(self) -> str:
        return f"{self.rows}x{self.hidden}"

    @property
    def depth(self) -> int:
        """Columns of a head."""
        return self.hidden // max(1, self.heads)

    def shorter(self, rows: int) -> Layer:
        """The layer for less input: of fewer rows, if it has more."""
        return replace(self, rows=min(rows, self.rows))


LAYERS = (
    Layer("bert-base", 768, 12),
    Layer("bge-small", 384, 12),
    Layer("deberta-v2", 768, 12, "deberta", span=256),
    Layer("distilbert", 768, 12, "distilbert"),
    Layer("roberta", 768, 12),
    Layer("phonemizer", 512, 4, "plain", 64),
    Layer("opset18", 512, 8, "plain"),
    Layer("nsnet2", 400, 0, "gru", 64),
)
QUICK = (
    Layer("bge-small", 384, 12, rows=32),
    Layer("deberta-v2", 384, 6, "deberta", 32, 32),
    Layer("nsnet2", 400, 0, "gru", 8),
)
TINY = (
    Layer("tiny", 36, 3, "bert", 7),
    Layer("tiny-deberta", 24, 2, "deberta", 9, 4),
    Layer("tiny-gru", 20, 0, "gru", 5),
)


def draw(layer: Layer, seed: int = 0) -> dict[str, Array]:
    """The input x and all weights, f32."""
    random, width = np.random.default_rng(seed), layer.hidden

    def normal(*shape: int) -> Array:
        return random.standard_normal(shape).astype(np.float32)

    def weight(*shape: int) -> Array:
        return normal(*shape) / np.float32(width**0.5)

    found = {"x": normal(layer.rows, width)}
    if layer.form == "gru":
        found |= {"wi": weight(width, width), "bi": normal(width)}
        return found | {name: weight(1, 3 * width, width) for name in "wr"}
    for name in "qkvo":
        found |= {f"w{name}": weight(width, width), f"b{name}": normal(width)}
    if layer.form == "deberta":
        found["places"] = normal(2 * layer.span, width)
    return found | {"scale": normal(width), "shift": normal(width)}


def model_of(layer: Layer, numbers: Mapping[str, Array]) -> onnx.ModelProto:
    """The layer as ONNX."""
    nodes = recurrence(layer) if layer.form == "gru" else attention(layer)
    held = {name: array for name, array in numbers.items() if name != "x"}
    held |= sizes(layer)
    read = {name for each in nodes for name in each.input}
    graph = helper.make_graph(
        nodes,
        layer.name,
        [
            helper.make_tensor_value_info(
                "x", onnx.TensorProto.FLOAT, numbers["x"].shape
            )
        ],
        [onnx.ValueInfoProto(name="y")],
        [numpy_helper.from_array(a, name) for name, a in held.items() if name in read],
    )
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9
    )


def sizes(layer: Layer) -> dict[str, Array]:
    """Shapes, factors and masks that the nodes read."""
    if layer.form == "gru":
        return {"steps": np.array([layer.rows, 1, layer.hidden])}
    terms = 3 if layer.form == "deberta" else 1  # of each score
    kept = np.arange(layer.rows) < layer.rows - layer.rows // 8  # the others: padding
    return {
        "by_heads": np.array([-1, layer.heads, layer.depth]),
        "by_rows": np.array([layer.rows, layer.hidden]),
        "factor": np.array((terms * layer.depth) ** -0.5, np.float32),
        "mask": np.where(kept, 0, -1e4).astype(np.float32)[None, None],
        "excluded": ~kept[None, None],
        "least": np.array(np.finfo(np.float32).min),
    } | (places_of(layer.rows, layer.span, layer.heads) if layer.span else {})


def attention(layer: Layer) -> list[onnx.NodeProto]:
    """All but the projections' right operands is the same in every form."""
    nodes: list[onnx.NodeProto] = []
    for name, order in (("q", [1, 0, 2]), ("k", [1, 2, 0]), ("v", [1, 0, 2])):
        nodes += [*projected(layer, "x", name), *by_heads(name, order)]
    return [
        *nodes,
        *scores(layer),
        node("Softmax", ["scores"], ["shares"], axis=-1),
        node("MatMul", ["shares", "v"], ["weighed"]),
        node("Transpose", ["weighed"], ["turned"], perm=[1, 0, 2]),
        node("Reshape", ["turned", "by_rows"], ["joined"]),
        *projected(layer, "joined", "o"),
        node("Add", ["o_flat", "x"], ["sum"]),
        node("LayerNormalization", ["sum", "scale", "shift"], ["y"]),
    ]


def projected(layer: Layer, given: str, name: str) -> list[onnx.NodeProto]:
    if layer.form == "plain":
        return [node("Gemm", [given, f"w{name}", f"b{name}"], [f"{name}_flat"])]
    return [
        node("MatMul", [given, f"w{name}"], [f"{name}_product"]),
        node("Add", [f"{name}_product", f"b{name}"], [f"{name}_flat"]),
    ]


def by_heads(name: str, order: list[int]) -> list[onnx.NodeProto]:
    return [
        node("Reshape", [f"{name}_flat", "by_heads"], [f"{name}_heads"]),
        node("Transpose", [f"{name}_heads"], [name], perm=order),
    ]


def scores(layer: Layer) -> list[onnx.NodeProto]:
    """Of `q` and `k`, which is turned already, to `scores`."""
    match layer.form:
        case "distilbert":
            return [
                node("Mul", ["q", "factor"], ["scaled"]),
                node("MatMul", ["scaled", "k"], ["all"]),
                node("Where", ["excluded", "least", "all"], ["scores"]),
            ]
        case "deberta":
            return [
                *content_and_places(),
                node("Mul", ["all", "factor"], ["scaled"]),
                node("Add", ["scaled", "mask"], ["scores"]),
            ]
        case "plain":
            return [
                node("MatMul", ["q", "k"], ["all"]),
                node("Mul", ["all", "factor"], ["scores"]),
            ]
        case _:
            return [
                node("MatMul", ["q", "k"], ["all"]),
                node("Mul", ["all", "factor"], ["scaled"]),
                node("Add", ["scaled", "mask"], ["scores"]),
            ]


def recurrence(layer: Layer) -> list[onnx.NodeProto]:
    return [
        node("Gemm", ["x", "wi", "bi"], ["product"]),
        node("Reshape", ["product", "steps"], ["sequence"]),
        node("GRU", ["sequence", "w", "r"], ["y"], hidden_size=layer.hidden),
    ]
