"""Random tensors from a counter-based generator: SplitMix64 of seed and position.

The same model gives the same numbers on every call, at any thread count and on every
CPU.  The stream is chosen by the `seed` attribute; a node without one takes a fixed
seed made from its name, so that two such nodes differ.
"""

from __future__ import annotations

import math
import struct
import zlib

import numpy as np

from nanoloom.linalg.builder.builder import PARALLEL, REDUCTION, Builder, computed_as
from nanoloom.linalg.builder.indexing import dims, position
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.placed_operands import BroadcastOperand, combine
from nanoloom.linalg.builder.scalar import Scalar, constant, select
from nanoloom.linalg.builder.tensor import Tensor
from nanoloom.linalg.reductions.cumulative import accumulate
from nanoloom.linalg.reductions.softmax import row_maximum

UINT64, INT64 = np.dtype(np.uint64), np.dtype(np.int64)
FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
BITS = {FLOAT32: 24, FLOAT64: 53}
# Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators (2014)
GAMMA, FIRST, SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def seed_of(node: Node) -> int:
    """64 bits that choose the stream."""
    if node.has("seed"):
        return mixed(int.from_bytes(struct.pack("<d", node.float("seed")), "little"))
    return mixed(zlib.crc32(node.name.encode()) + 1)


def mixed(number: int) -> int:
    """SplitMix64's finalizer on a Python integer."""
    wide = (1 << 64) - 1
    number = ((number ^ number >> 30) * FIRST) & wide
    number = ((number ^ number >> 27) * SECOND) & wide
    return number ^ number >> 31


def draw(seed: int, counter: Scalar) -> Scalar:
    """64 random bits: the generator's state after `counter` steps, finalized."""
    state = counter.cast(UINT64) * GAMMA + seed
    state = (state ^ (state >> 30)) * FIRST
    state = (state ^ (state >> 27)) * SECOND
    return state ^ (state >> 31)


def unit(seed: int, counter: Scalar, dtype: np.dtype, least: int = 0) -> Scalar:
    """Uniform in [0, 1), or in (0, 1] for least = 1: every multiple of 2^-bits."""
    bits = BITS[dtype]
    whole = (draw(seed, counter) >> (64 - bits)).cast(INT64) + least
    return whole.cast(dtype) * 2.0**-bits


def counter_of(shape: tuple[int, ...]) -> Scalar:
    """The row-major number of the current element."""
    number = constant(0, INT64)
    for d, size in enumerate(shape):
        number = number * size + position(d)
    return number


def uniform(b: Builder, node: Node) -> Tensor:
    """low + (high - low) * u."""
    shape, dtype = node.output_shapes[0], node.output_dtypes[0]
    low, high = node.float("low", 0.0), node.float("high", 1.0)
    seed, wide = seed_of(node), computed_as(dtype)
    return combine(
        b,
        lambda: unit(seed, counter_of(shape), wide) * (high - low) + low,
        shape,
        dtype,
    )


def normal(b: Builder, node: Node) -> Tensor:
    """mean + scale * sqrt(-2 log u) * cos(2 pi v) (Box and Muller)."""
    shape, dtype = node.output_shapes[0], node.output_dtypes[0]
    mean, scale = node.float("mean", 0.0), node.float("scale", 1.0)
    seed, wide = seed_of(node), computed_as(dtype)

    def body() -> Scalar:
        twice = counter_of(shape) * 2
        radius = (unit(seed, twice, wide, least=1).math("log") * -2).math("sqrt")
        angle = unit(seed, twice + 1, wide) * (2 * math.pi)
        return radius * angle.math("cos") * scale + mean

    return combine(b, body, shape, dtype)


def bernoulli(b: Builder, node: Node) -> Tensor:
    """1 with the probability that the input states, else 0."""
    x, dtype = node.input(0), node.output_dtypes[0]
    seed, made = seed_of(node), computed_as(dtype)

    def body(p: Scalar) -> Scalar:
        hit = unit(seed, counter_of(x.shape), p.dtype) < p
        return select(hit, constant(1, made), constant(0, made))

    return combine(b, body, x.shape, dtype, x)


def multinomial(b: Builder, node: Node) -> Tensor:
    """Draws from each row's exp(x): how many running sums a random share reaches."""
    x, dtype = node.input(0), node.output_dtypes[0]
    batch, classes = x.shape
    draws = node.int("sample_size", 1)
    grown = combine(
        b,
        lambda s, top: (s - top).cast(FLOAT64).math("exp"),
        x.shape,
        FLOAT64,
        x,
        row_maximum(b, x, [1]),
    )
    running = accumulate(b, grown, 1, lambda total, s: total + s, 0)
    last = b.reshape(b.slice(running, [0, classes - 1], [batch, 1]), (batch,))
    seed, shape = seed_of(node), (batch, draws)
    target = combine(
        b,
        lambda total: unit(seed, counter_of(shape), FLOAT64) * total,
        shape,
        FLOAT64,
        BroadcastOperand(last, (0,)),
    )

    def count(share: Scalar, reached: Scalar, sofar: Scalar) -> Scalar:
        return sofar + (reached <= share).cast(INT64)

    found = b.generic(
        [(target, dims(3, [0, 1])), (running, dims(3, [0, 2]))],
        [(b.full(shape, 0, INT64), dims(3, [0, 1]))],
        [PARALLEL, PARALLEL, REDUCTION],
        count,
    )[0]
    return b.elementwise(
        lambda n: n.minimum(classes - 1).cast(dtype), found, dtype=dtype
    )


OPERATORS = {
    "Bernoulli": bernoulli,
    "Multinomial": multinomial,
    "RandomNormal": normal,
    "RandomNormalLike": normal,
    "RandomUniform": uniform,
    "RandomUniformLike": uniform,
}
