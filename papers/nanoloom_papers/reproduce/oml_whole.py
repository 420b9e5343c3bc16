"""Whole models of the OML-vect paper: their layers in a row, weights seeded.

A transformer's layer is attention and what is behind it: a product with GELU, as
exporters write it with Erf, another one, the sum, layer normalization.  nsNet2 is
products and two GRUs.  Embeddings, which look up rows, and the last product are not
there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from nanoloom_papers.reproduce.oml_models import (
    LAYERS,
    QUICK,
    TINY,
    Layer,
    attention,
    draw,
    sizes,
)

Array = np.ndarray[Any, np.dtype[Any]]
node = helper.make_node
FEATURES, HEAD = 161, 600  # of nsNet2: a frame's, and of its last products


@dataclass(frozen=True)
class Whole:
    """So many layers, the numbers between the two products of each."""

    layer: Layer
    depth: int
    inner: int = 0


ROWS = 64  # of a whole model's input, at most
DEPTHS = {
    "bert-base": (12, 3072),
    "bge-small": (12, 1536),
    "deberta-v2": (12, 3072),
    "distilbert": (6, 3072),
    "roberta": (12, 3072),
    "phonemizer": (6, 2048),
    "opset18": (6, 2048),
    "nsnet2": (2, 0),
}
WHOLE = tuple(Whole(each.shorter(ROWS), *DEPTHS[each.name]) for each in LAYERS)
QUICK_WHOLE = (Whole(QUICK[0], 2, 1536), Whole(QUICK[2], 2))
TINY_WHOLE = (Whole(TINY[0], 2, 40), Whole(TINY[2], 2))


@dataclass(frozen=True)
class Part:
    """Nodes from x to y, and what they read besides."""

    nodes: Sequence[onnx.NodeProto]
    held: dict[str, Array]

    def placed(self, number: int, begin: str, end: str) -> Part:
        """With names of its own, from one value to another."""

        def name(old: str) -> str:
            return {"x": begin, "y": end, "": ""}.get(old, f"{old}_{number}")

        made: list[onnx.NodeProto] = []
        for old in self.nodes:
            new = onnx.NodeProto()
            new.CopyFrom(old)
            new.input[:] = [name(each) for each in old.input]
            new.output[:] = [name(each) for each in old.output]
            made.append(new)
        return Part(made, {name(key): array for key, array in self.held.items()})


def whole_model(whole: Whole) -> tuple[onnx.ModelProto, Array]:
    """The model, and its input x."""
    layer, is_gru = whole.layer, whole.layer.form == "gru"
    parts = list(nsnet2(layer) if is_gru else transformer(whole))
    ends = [*(f"value_{number}" for number in range(1, len(parts))), "y"]
    placed = [
        part.placed(number, begin, end)
        for number, (part, begin, end) in enumerate(
            zip(parts, ["x", *ends], ends, strict=False)
        )
    ]
    held = {key: array for part in placed for key, array in part.held.items()}
    shape = (layer.rows, FEATURES if is_gru else layer.hidden)
    graph = helper.make_graph(
        [each for part in placed for each in part.nodes],
        layer.name,
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)],
        [onnx.ValueInfoProto(name="y")],
        [numpy_helper.from_array(array, key) for key, array in held.items()],
    )
    opset = helper.make_opsetid("", 18)
    model = helper.make_model(graph, opset_imports=[opset], ir_version=9)
    return model, normal(np.random.default_rng(0), *shape)


def normal(random: np.random.Generator, *shape: int) -> Array:
    return random.standard_normal(shape, dtype=np.float32)


def transformer(whole: Whole) -> Iterator[Part]:
    """Attention and the two products behind it, in turns."""
    layer = whole.layer
    for number in range(whole.depth):
        random = np.random.default_rng(number)
        yield used(attention(layer), draw(layer, number) | sizes(layer))
        yield products(random, layer.hidden, whole.inner)


def used(nodes: Sequence[onnx.NodeProto], held: dict[str, Array]) -> Part:
    """Nodes with what they read of these arrays."""
    read = {name for each in nodes for name in each.input} - {"x"}
    return Part(nodes, {name: a for name, a in held.items() if name in read})


def products(random: np.random.Generator, width: int, inner: int) -> Part:
    """x + GELU(x w1 + b1) w2 + b2, normalized."""
    held: dict[str, Array] = {
        "w1": normal(random, width, inner) / np.float32(width**0.5),
        "b1": normal(random, inner),
        "w2": normal(random, inner, width) / np.float32(inner**0.5),
        "b2": normal(random, width),
        "root": np.array(2**0.5, np.float32),
        "one": np.array(1, np.float32),
        "half": np.array(0.5, np.float32),
        "scale2": normal(random, width),
        "shift2": normal(random, width),
    }
    nodes = [
        node("MatMul", ["x", "w1"], ["first"]),
        node("Add", ["first", "b1"], ["h"]),
        node("Div", ["h", "root"], ["rooted"]),
        node("Erf", ["rooted"], ["erf"]),
        node("Add", ["erf", "one"], ["raised"]),
        node("Mul", ["h", "raised"], ["doubled"]),
        node("Mul", ["doubled", "half"], ["gelu"]),
        node("MatMul", ["gelu", "w2"], ["second"]),
        node("Add", ["second", "b2"], ["flat"]),
        node("Add", ["flat", "x"], ["both"]),
        node("LayerNormalization", ["both", "scale2", "shift2"], ["y"]),
    ]
    return Part(nodes, held)


def nsnet2(layer: Layer) -> Iterator[Part]:
    """A product, two GRUs, three products; a frame is a row."""
    random, width = np.random.default_rng(0), layer.hidden
    yield dense(random, FEATURES, width, "")
    for _ in range(2):
        yield recurrent(random, layer.rows, width)
    yield dense(random, width, HEAD, "Relu")
    yield dense(random, HEAD, HEAD, "Relu")
    yield dense(random, HEAD, FEATURES, "Sigmoid")


def dense(random: np.random.Generator, given: int, made: int, behind: str) -> Part:
    """A product and a function behind it, if there is one."""
    held: dict[str, Array] = {
        "w": normal(random, given, made) / np.float32(given**0.5),
        "b": normal(random, made),
    }
    product = node("Gemm", ["x", "w", "b"], ["product" if behind else "y"])
    return Part(
        [product, *([node(behind, ["product"], ["y"])] if behind else [])], held
    )


def recurrent(random: np.random.Generator, rows: int, width: int) -> Part:
    """A GRU over the rows."""
    held: dict[str, Array] = {
        name: normal(random, 1, 3 * width, width) / np.float32(width**0.5)
        for name in "wr"
    }
    held |= {"steps": np.array([rows, 1, width]), "flat": np.array([rows, width])}
    nodes = [
        node("Reshape", ["x", "steps"], ["sequence"]),
        node("GRU", ["sequence", "w", "r"], ["states"], hidden_size=width),
        node("Reshape", ["states", "flat"], ["y"]),
    ]
    return Part(nodes, held)
