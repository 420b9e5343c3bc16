"""Small models of rows, and tables for them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pyarrow as pa
from onnx.parser import parse_model

HEAD = '<ir_version: 10, opset_import: ["" : 20]>'
# Two products with a nonlinearity: 50 features, 7 classes.
MLP = f"""{HEAD}
mlp (float[batch, 50] x) => (float[batch, 7] y) {{
    a = MatMul(x, w1)  b = Relu(a)  c = MatMul(b, w2)  y = Softmax<axis = -1>(c)
}}"""
# Words of rows of any length: vectors, with those behind a row's end left out, and
# their mean.
WORDS = f"""{HEAD}
words (int64[batch, length] ids, int64[batch, length] mask)
    => (float[batch, length, 8] each, float[batch, 8] mean)
<int64[1] last = {{2}}, int64[1] along = {{1}}> {{
    g = Gather(table, ids)  m = Cast<to = 1>(mask)  n = Unsqueeze(m, last)
    each = Mul(g, n)  s = ReduceSum<keepdims = 0>(each, along)
    k = ReduceSum<keepdims = 1>(m, along)  mean = Div(s, k)
}}"""
PAIRS = f"""{HEAD}
pairs (float[4, 3] x) => (float[4] y) <int64[1] along = {{1}}> {{
    y = ReduceSum<keepdims = 0>(x, along)
}}"""
VOCABULARY = 30


def weight(shape: tuple[int, ...], seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def write(folder: Path, text: str, **weights: tuple[int, ...]) -> Path:
    """A model file with random weights of these shapes."""
    model = parse_model(text)
    for seed, (name, shape) in enumerate(sorted(weights.items())):
        array = onnx.numpy_helper.from_array(weight(shape, seed), name)
        model.graph.initializer.append(array)
    path = folder / f"{model.graph.name}.onnx"
    onnx.save(model, path)
    return path


def mlp(folder: Path) -> Path:
    return write(folder, MLP, w1=(50, 129), w2=(129, 7))


def words(folder: Path) -> Path:
    return write(folder, WORDS, table=(VOCABULARY, 8))


def features(rows: int, seed: int = 0, wide: int = 50) -> np.ndarray:
    return weight((rows, wide), 1000 + seed)


def fixed(array: np.ndarray) -> pa.Array:
    return pa.FixedSizeListArray.from_arrays(pa.array(array.reshape(-1)), len(array[0]))


def table(rows: int, seed: int = 0) -> pa.Table:
    return pa.table({"id": np.arange(rows), "x": fixed(features(rows, seed))})


def texts(lengths: list[int], seed: int = 0) -> list[np.ndarray]:
    random = np.random.default_rng(seed)
    return [random.integers(0, VOCABULARY, n, np.int64) for n in lengths]


def numbers(column: pa.ChunkedArray | pa.Array) -> np.ndarray:
    """A column of numbers, lists of one size, or tensors as an array."""
    return np.array(column.to_pylist(), np.float32)
