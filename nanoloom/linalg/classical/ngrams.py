"""TfIdfVectorizer on integers: how often each n-gram of a pool occurs in a sequence."""

from __future__ import annotations

import numpy as np

from nanoloom.ir.mlir import ir
from nanoloom.linalg.builder.builder import PARALLEL, REDUCTION, Builder, Map
from nanoloom.linalg.builder.indexing import INT64, position, take
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.scalar import Scalar
from nanoloom.linalg.builder.tensor import Array, Tensor

FLOAT32 = np.dtype(np.float32)
ANY_LENGTH = 32  # distances, each a loop, that are counted for rows of any length


def tf_idf(b: Builder, node: Node) -> Tensor:
    """Counts (TF), whether there are any (IDF), or both times weights: f32."""
    x, shape = node.input(0), node.output_shapes[0]
    if node.has("pool_strings"):
        raise node.unsupported("its n-grams are of strings")
    rows = b.reshape(x, (1, x.size) if x.rank < 2 else x.shape)
    pools = pool_of(node)
    counts = [occurrences(b, node, rows, grams) for grams in pools]
    found = b.concat(counts, 1)
    order = order_of(node, shape[-1], found.shape[1])
    if (order == found.shape[1]).any():  # a place that no n-gram has
        found = b.pad(found, (0, 0), (0, 1))
    found = take(b, found, order, 1)
    mode, given = node.string("mode"), node.floats("weights")
    if mode not in ("TF", "IDF", "TFIDF"):
        raise node.unsupported(f"mode {mode} is not known", "use TF, IDF or TFIDF")
    places = node.ints("ngram_indexes")
    if len(given) not in (0, len(places)):
        raise node.unsupported(f"it has {len(given)} weights for {len(places)} n-grams")
    in_place = np.ones(shape[-1], FLOAT32)
    if given:  # in the pool's order
        in_place[places] = given
    weights = b.constant(in_place)

    def body(count: Scalar, weight: Scalar) -> Scalar:
        number = (count > 0).cast(FLOAT32) if mode == "IDF" else count.cast(FLOAT32)
        return number if mode == "TF" else number * weight

    made = b.elementwise(body, found, weights, dtype=FLOAT32)
    return b.reshape(made, shape)


def pool_of(node: Node) -> list[Array]:
    """The pool's n-grams for n = 1, 2 ...: [count, n] each."""
    pool, starts = np.array(node.ints("pool_int64s")), node.ints("ngram_counts")
    ends = [*starts[1:], len(pool)]
    return [
        pool[first : first + (last - first) // n * n].reshape(-1, n)
        for n, (first, last) in enumerate(zip(starts, ends, strict=True), 1)
    ]


def order_of(node: Node, size: int, count: int) -> Array:
    """Which n-gram of the pool each place of the result counts; `count` for none."""
    places = node.ints("ngram_indexes")
    if len(places) != count or len(set(places)) != count or min(places) < 0:
        raise node.unsupported(
            f"its {len(places)} ngram_indexes do not give each of its {count} n-grams "
            "a place of its own"
        )
    order = np.full(size, count)
    order[places] = np.arange(count)
    return order


def occurrences(b: Builder, node: Node, x: Tensor, grams: Array) -> Tensor:
    """How often each n-gram [count, n] occurs in each row, int64 [rows, count].

    Its elements may stand up to max_skip_count + 1 places apart, all equally far.
    """
    rows, length = x.shape
    count, n = grams.shape
    total = b.full((rows, count), 0, INT64)
    if not node.int("min_gram_length") <= n <= node.int("max_gram_length") or not count:
        return total
    table = b.constant(grams.astype(np.int64))
    most = node.int("max_skip_count") + 1 if n > 1 else 1
    if most > ANY_LENGTH:  # only those that a row of this length has
        most = min(most, max(length - 1, 0) // (n - 1))
    # Starts are all places, for any length: what is behind the end is no match.
    x = b.pad(x, (0, 0), (0, (n - 1) * most))
    for distance in range(1, most + 1):
        total = counted(b, x, table, total, distance, length)
    return total


def counted(
    b: Builder, x: Tensor, grams: Tensor, total: Tensor, distance: int, length: int
) -> Tensor:
    """total and the matches at every start, elements `distance` places apart.

    length: of the rows, which x has more behind.
    """
    row, gram, start = (ir.AffineDimExpr.get(d) for d in range(3))
    n = grams.shape[1]
    parts = [b.slice(x, (0, k * distance), (x.shape[0], length)) for k in range(n)]
    seen = [(part, Map.get(3, 0, [row, start])) for part in parts]
    wanted = [
        (grams, Map.get(3, 0, [gram, ir.AffineConstantExpr.get(k)])) for k in range(n)
    ]

    def body(*scalars: Scalar) -> Scalar:
        same = [
            value.cast(INT64).equal(part)
            for value, part in zip(scalars[:n], scalars[n : 2 * n], strict=True)
        ]
        match = same[0]
        for one in same[1:]:
            match = match & one
        if n > 1:
            match = match & (position(2) < length - (n - 1) * distance)
        return scalars[-1] + match.cast(INT64)

    return b.generic(
        [*seen, *wanted],
        [(total, Map.get(3, 0, [row, gram]))],
        [PARALLEL, PARALLEL, REDUCTION],
        body,
    )[0]


OPERATORS = {"TfIdfVectorizer": tf_idf}
