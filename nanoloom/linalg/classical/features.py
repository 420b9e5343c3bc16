"""Preparation of features, of ai.onnx.ml: scaling, replacing, choosing, encoding."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nanoloom.linalg.builder.builder import PARALLEL, REDUCTION, Builder
from nanoloom.linalg.builder.index_checks import check, index_range
from nanoloom.linalg.builder.indexing import (
    INT64,
    dims,
    known_indices,
    map_generic,
    position,
    take,
    wrapped,
)
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.placed_operands import BroadcastOperand, combine
from nanoloom.linalg.builder.scalar import Scalar, constant, is_float, select
from nanoloom.linalg.builder.tensor import Array, Tensor
from nanoloom.linalg.reductions.reduce import lowest

FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)


def working_type(x: Tensor) -> np.dtype:
    """What features are computed in before they become f32."""
    return FLOAT64 if x.dtype == FLOAT64 else FLOAT32


def extract(b: Builder, node: Node) -> Tensor:
    """ArrayFeatureExtractor: columns of x, numbered by the second input."""
    x, indices, shape = node.input(0), node.input(1), node.output_shapes[0]
    axis, extent = x.rank - 1, x.shape[-1]
    check(b, node, indices, index_range(extent))
    if indices.is_constant:
        places = known_indices(indices.array().reshape(-1), extent)
        return b.reshape(take(b, x, places, axis), shape)
    source, flat = b.value(x), b.reshape(indices, (indices.size,))

    def body(index: Scalar) -> Scalar:
        return b.load(
            source, x.dtype, [*map(position, range(axis)), wrapped(index, extent)]
        )

    wide = (*x.shape[:-1], indices.size)
    made = map_generic(b, wide, x.dtype, [(flat, dims(x.rank, [axis]))], body)
    return b.reshape(made, shape)


def binarizer(b: Builder, node: Node) -> Tensor:
    """1 where x is larger than the threshold, else 0."""
    x, threshold = node.input(0), node.float("threshold")
    wide = FLOAT64 if x.dtype.itemsize == 8 else FLOAT32
    return b.elementwise(
        lambda s: (s.cast(wide) > threshold).cast(x.dtype), x, dtype=x.dtype
    )


def scaler(b: Builder, node: Node) -> Tensor:
    """(x - offset) * scale, one of each or one for every column."""
    x, wide = node.input(0), working_type(node.input(0))
    columns = x.shape[-1] if x.rank else 1
    parts = [row(b, node, name, columns, wide) for name in ("offset", "scale")]
    return b.elementwise(
        lambda s, offset, scale: ((s.cast(wide) - offset) * scale).cast(FLOAT32),
        x, *parts, dtype=FLOAT32,
    )  # fmt: skip


def row(b: Builder, node: Node, name: str, columns: int, dtype: np.dtype) -> Tensor:
    """A list attribute of one number, or of one for every column."""
    numbers = node.floats(name)
    if len(numbers) not in (1, columns):
        raise node.unsupported(
            f"{name} has {len(numbers)} numbers, but x has {columns} columns"
        )
    return b.constant(np.array(numbers, dtype))


def normalizer(b: Builder, node: Node) -> Tensor:
    """Each row divided by its largest element, its sum of sizes, or its length."""
    x, norm = node.input(0), node.string("norm", "MAX")
    wide = working_type(x)
    x = b.cast(x, wide)

    def reduced(first: float, fold: str, prepare: str) -> Tensor:
        prepared = {
            "same": lambda s: s,
            "size": lambda s: s.absolute(),
            "square": lambda s: s * s,
        }[prepare]
        return b.reduce(
            (lambda s, v: s.maximum(v)) if fold == "max" else (lambda s, v: s + v),
            x, [x.rank - 1], first, keepdims=False, prepare=prepared,
        )  # fmt: skip

    match norm:
        case "MAX":
            divisor = reduced(float(lowest(wide)), "max", "same")
        case "L1":
            divisor = reduced(0, "sum", "size")
        case "L2":
            square = reduced(0, "sum", "square")
            divisor = b.elementwise(lambda s: s.math("sqrt"), square)
        case _:
            raise node.unsupported(f"norm {norm} is not known", "use MAX, L1 or L2")

    def body(value: Scalar, by: Scalar) -> Scalar:
        return select(by.equal(0), value, value / by)

    outer = BroadcastOperand(divisor, tuple(range(x.rank - 1)))
    return b.cast(combine(b, body, x.shape, wide, x, outer), FLOAT32)


def imputer(b: Builder, node: Node) -> Tensor:
    """Another number, one or one for every column, in place of a missing one."""
    x = node.input(0)
    floats = is_float(x.dtype)
    values = (
        node.floats("imputed_value_floats")
        if floats
        else (node.ints("imputed_value_int64s"))
    )
    columns = x.shape[-1]
    if len(values) not in (1, columns):
        raise node.unsupported(
            f"it has {len(values)} imputed values of the input's type for {columns} "
            "columns"
        )
    missing = (
        node.float("replaced_value_float")
        if floats
        else (node.int("replaced_value_int64"))
    )

    def body(value: Scalar, other: Scalar) -> Scalar:
        gone = value.is_nan() if missing != missing else value.equal(missing)
        return select(gone, other, value)

    return b.elementwise(body, x, b.constant(np.array(values, x.dtype)))


def feature_vectorizer(b: Builder, node: Node) -> Tensor:
    """The columns of all inputs side by side, f32."""
    parts = [x for x in node.inputs if x is not None]
    rows = node.output_shapes[0][0]
    return b.concat(
        [b.cast(b.reshape(x, (rows, x.size // max(rows, 1))), FLOAT32) for x in parts],
        1,
    )


def one_hot_encoder(b: Builder, node: Node) -> Tensor:
    """1 at the place of x's category along a new last dimension; zeros without one."""
    x, categories = node.input(0), node.ints("cats_int64s")
    if not categories:
        raise node.unsupported("its categories are strings")
    table = b.constant(np.array(categories, np.int64))

    def body(value: Scalar, category: Scalar) -> Scalar:
        whole = value.cast(INT64)
        return whole.equal(category).cast(FLOAT32)

    if not node.int("zeros", 1):
        places = places_of(b, x, categories)
        what = "a category that is not listed: place"
        check(b, node, places, range(len(categories)), what)
    shape = node.output_shapes[0]
    operands = (
        BroadcastOperand(x, tuple(range(x.rank))),
        BroadcastOperand(table, (x.rank,)),
    )
    return combine(b, body, shape, FLOAT32, *operands)


def places_of(b: Builder, x: Tensor, categories: Sequence[int]) -> Tensor:
    """Where each element stands among the categories, their number for none; int64."""
    count = len(categories)
    if x.is_constant:
        same = x.array()[..., None].astype(np.int64) == np.array(categories)
        return b.constant(np.where(same.any(-1), same.argmax(-1), count))
    numbers = b.constant(np.arange(count, dtype=np.int64))
    table = b.constant(np.array(categories, np.int64))

    def body(value: Scalar, category: Scalar, number: Scalar) -> Scalar:
        same = value.cast(INT64).equal(category)
        return select(same, number, constant(count, INT64))

    whole, last = tuple(range(x.rank)), (x.rank,)
    operands = (
        BroadcastOperand(x, whole),
        BroadcastOperand(table, last),
        BroadcastOperand(numbers, last),
    )
    found = combine(b, body, (*x.shape, count), INT64, *operands)
    return b.reduce(
        lambda one, two: one.minimum(two), found, [-1], count, keepdims=False
    )


def label_encoder(b: Builder, node: Node) -> Tensor:
    """values[i] where x == keys[i] (the last i), else the default; NaN is a key."""
    x, dtype = node.input(0), node.output_dtypes[0]
    keys, values = listed(node, "keys", x.dtype), listed(node, "values", dtype)
    default = node.array("default_tensor")
    other = (
        default.reshape(-1)[0].item()
        if default is not None
        else (
            node.float("default_float")
            if is_float(dtype)
            else node.int("default_int64", -1)
        )
    )
    if len(keys) != len(values):
        raise node.unsupported(f"it has {len(keys)} keys for {len(values)} values")
    start = b.full(x.shape, other, dtype)

    def body(value: Scalar, key: Scalar, made: Scalar, sofar: Scalar) -> Scalar:
        same = value.equal(key)
        if is_float(x.dtype):
            same = same | (value.is_nan() & key.is_nan())
        return select(same, made, sofar)

    outer, last = dims(x.rank + 1, range(x.rank)), dims(x.rank + 1, [x.rank])
    tables = [(b.constant(v), last) for v in (keys, values)]
    return b.generic(
        [(x, outer), *tables], [(start, outer)], [PARALLEL] * x.rank + [REDUCTION], body
    )[0]


def listed(node: Node, name: str, dtype: np.dtype) -> Array:
    """Keys or values of a LabelEncoder, in whichever attribute they are."""
    given = node.array(f"{name}_tensor")
    if given is None and node.has(f"{name}_strings"):
        raise node.unsupported(f"its {name} are strings")
    if given is None and is_float(dtype):
        given = np.array(node.floats(f"{name}_floats"))
    if given is None:
        given = np.array(node.ints(f"{name}_int64s"), np.int64)
    return given.reshape(-1).astype(dtype)


OPERATORS = {
    "ai.onnx.ml.ArrayFeatureExtractor": extract,
    "ai.onnx.ml.Binarizer": binarizer,
    "ai.onnx.ml.FeatureVectorizer": feature_vectorizer,
    "ai.onnx.ml.Imputer": imputer,
    "ai.onnx.ml.LabelEncoder": label_encoder,
    "ai.onnx.ml.Normalizer": normalizer,
    "ai.onnx.ml.OneHotEncoder": one_hot_encoder,
    "ai.onnx.ml.Scaler": scaler,
}
