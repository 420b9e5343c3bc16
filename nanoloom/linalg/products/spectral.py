"""DFT and STFT as contractions with tables of roots of unity.

A complex signal is [..., 2], a real one [..., 1].  Multiplying by a root is a matrix on
(real, imaginary), so a transform is one contraction over places and parts.  A length
with factors is split: transforms of both factors' lengths, and between them products
with roots ("twiddles"), recursively (Cooley and Tukey).  Real signals are taken as
complex ones of half the length.  In between all real parts stand in front of all
imaginary ones, so that vectors hold one of the two.
"""

from __future__ import annotations

from math import isqrt

import numpy as np

from nanoloom.ir.mlir import ir
from nanoloom.linalg.builder.builder import (
    PARALLEL,
    Builder,
    Map,
    computed_as,
)
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.tensor import Array, Tensor

DIRECT = 64  # lengths up to this one are a single contraction


def rotations(angles: Array, dtype: np.dtype) -> Array:
    """exp(i * angle) as matrices [..., part in, part out] on (real, imaginary)."""
    cosine, sine = np.cos(angles), np.sin(angles)
    rows = np.stack([np.stack([cosine, sine], -1), np.stack([-sine, cosine], -1)], -2)
    return rows.astype(dtype)


def roots(products: Array, length: int, sign: int) -> Array:
    """Angles sign * 2 pi * products / length, reduced exactly before the division."""
    return sign * 2 * np.pi * (products % length) / length


def transform(
    b: Builder, x: Tensor, sign: int, count: int | None = None, parts: int = 2
) -> Tensor:
    """sum over n of exp(sign * 2 pi i n k / length) * x[a, n, c] for k < count.

    x: [a, length, c, 1 or 2].  Result: [a, count, c, parts] in f32 or f64.
    """
    made = planar(b, b.transpose(x, (0, 3, 1, 2)), sign, count, parts)
    return b.transpose(made, (0, 2, 3, 1))


def planar(
    b: Builder, x: Tensor, sign: int, count: int | None = None, parts: int = 2
) -> Tensor:
    """The same of [a, 1 or 2, length, c]: [a, parts, count, c]."""
    a, have, length, c = x.shape
    count = length if count is None else count
    wide, inner = computed_as(x.dtype), factor(length)
    real = (have, c, parts) == (1, 1, 2) and length % 2 == 0
    if real and length > DIRECT and count <= length // 2 + 1:
        return of_pairs(b, x, sign, count)
    if inner is None or length <= DIRECT:
        products = np.outer(np.arange(length), np.arange(count))
        table = rotations(roots(products, length, sign), wide)[:, :, :have, :parts]
        made = b.constant(np.ascontiguousarray(table.transpose(2, 0, 3, 1)))
        return b.einsum("apnc,pnqk->aqkc", x, made, dtype=wide)
    outer = length // inner
    # n = outer * n1 + n2 and k = k1 + inner * k2
    first = planar(b, b.reshape(x, (a, have, inner, outer * c)), sign)
    products = np.repeat(np.outer(np.arange(inner), np.arange(outer)), c, 1)
    turned = rotated(b, first, rotations(roots(products, length, sign), wide))
    second = planar(b, b.reshape(turned, (a * inner, 2, outer, c)), sign)
    apart = b.reshape(second, (a, inner, 2, outer, c))
    whole = b.reshape(b.transpose(apart, (0, 2, 3, 1, 4)), (a, 2, length, c))
    if (count, parts) == (length, 2):
        return whole
    return b.slice(whole, (0, 0, 0, 0), (a, parts, count, c))


def rotated(b: Builder, x: Tensor, table: Array) -> Tensor:
    """x [a, 2, k, m] times matrices [k, m, part in, part out]: [a, k, 2, m]."""
    a, _, k, m = x.shape
    d = [ir.AffineDimExpr.get(i) for i in range(4)]  # a, k, part out, m
    factors = b.constant(np.ascontiguousarray(table.transpose(2, 0, 3, 1)))
    pairs = [
        (each, Map.get(4, 0, at))
        for part in map(ir.AffineConstantExpr.get, range(2))
        for each, at in ((x, [d[0], part, d[1], d[3]]), (factors, [part, *d[1:]]))
    ]
    shape = (a, k, 2, m)
    return b.generic(
        pairs,
        [(Tensor(shape, x.dtype, b.empty(shape, x.dtype)), Map.get_identity(4))],
        [PARALLEL] * 4,
        lambda re, u, im, v, _: re * u + im * v,
    )[0]


def of_pairs(b: Builder, x: Tensor, sign: int, count: int) -> Tensor:
    """The same for real x [a, 1, length, 1], of pairs of numbers as complex ones.

    Z is the transform of x[2 n] + i x[2 n + 1], half as long, and w the root of k:

        result[k] = (Z[k] + Z'[-k]) / 2 + w (Z[k] - Z'[-k]) / 2 i      Z': conjugate
    """
    a, length = x.shape[0], x.shape[2]
    half = length // 2
    pairs = b.transpose(b.reshape(x, (a, half, 2)), (0, 2, 1))
    z = b.reshape(planar(b, b.reshape(pairs, (a, 2, half, 1)), sign), (a, 2, half))
    around = b.concat([z, b.slice(z, (0, 0, 0), (a, 2, 1))], 2)
    mirrored = b.slice(around, (0, 0, half), (a, 2, count), (1, 1, -1))
    d = [ir.AffineDimExpr.get(i) for i in range(3)]  # a, part out, k
    reads: list[tuple[Tensor, Map]] = []
    tables = mixing(length, count, sign)
    for seen, table in zip((around, mirrored), tables, strict=True):
        factors = b.constant(np.ascontiguousarray(table.transpose(1, 2, 0)), z.dtype)
        for part in map(ir.AffineConstantExpr.get, range(2)):
            reads.append((seen, Map.get(3, 0, [d[0], part, d[2]])))
            reads.append((factors, Map.get(3, 0, [part, d[1], d[2]])))
    shape = (a, 2, count)
    made = b.generic(
        reads,
        [(Tensor(shape, z.dtype, b.empty(shape, z.dtype)), Map.get_identity(3))],
        [PARALLEL] * 3,
        lambda p, t, q, u, r, v, s, w, _: (p * t + r * v) + (q * u + s * w),
    )[0]
    return b.reshape(made, (a, 2, count, 1))


def mixing(length: int, count: int, sign: int) -> tuple[Array, Array]:
    """What Z[k] and Z[-k] are multiplied by: matrices [k, part in, part out]."""
    angles = roots(np.arange(count), length, sign)
    cosine, sine = np.cos(angles), np.sin(angles)
    ahead = np.stack([1 + sine, -cosine, cosine, 1 + sine], -1)
    back = np.stack([1 - sine, cosine, cosine, sine - 1], -1)
    return ahead.reshape(-1, 2, 2) / 2, back.reshape(-1, 2, 2) / 2


def factor(length: int) -> int | None:
    """The largest divisor up to the root of a length; None for primes, 0 and 1."""
    divisors = [d for d in range(2, isqrt(max(length, 0)) + 1) if length % d == 0]
    return max(divisors, default=None)


def dft(b: Builder, node: Node) -> Tensor:
    """DFT along one axis; one-sided, inverse, or from one-sided to real."""
    x, length, axis = node.input(0), node.known(1), dft_axis(node)
    inverse, onesided = bool(node.int("inverse")), bool(node.int("onesided"))
    size = x.shape[axis]
    if length is not None:
        size = int(length.reshape(-1)[0])
    elif inverse and onesided:
        size = 2 * (size - 1)
    shape = x.shape
    outer, inner = int(np.prod(shape[:axis])), int(np.prod(shape[axis + 1 : -1]))
    view = b.reshape(x, (outer, shape[axis], inner, shape[-1]))
    if inverse and onesided:
        made = from_onesided(b, view, size)
    else:
        count = size // 2 + 1 if onesided else size
        made = transform(b, resized(b, view, size), 1 if inverse else -1, count)
    shape = (*shape[:axis], made.shape[1], *shape[axis + 1 : -1], made.shape[-1])
    scale = size if inverse else 1
    scaled = b.elementwise(lambda s: s / scale, made) if inverse else made
    return b.cast(b.reshape(scaled, shape), x.dtype)


def dft_axis(node: Node) -> int:
    """The transformed axis: an attribute before opset 20, an input since."""
    rank = node.input(0).rank
    if node.version < 20:
        return node.int("axis", 1) % rank
    given = node.known(2)
    return (-2 if given is None else int(given.reshape(-1)[0])) % rank


def resized(b: Builder, x: Tensor, length: int) -> Tensor:
    """[a, n, c, p] cut off or followed by zeros, to n == length."""
    a, have, c, parts = x.shape
    if have > length:
        return b.slice(x, (0, 0, 0, 0), (a, length, c, parts))
    return b.pad(x, (0, 0, 0, 0), (0, length - have, 0, 0))


def from_onesided(b: Builder, x: Tensor, length: int) -> Tensor:
    """The real signal whose spectrum begins with x; the rest is its mirror image.

    The mirrored half adds the same real part again, so that half is taken twice.
    """
    count = length // 2 + 1
    half = resized(b, x, count)
    weights = np.full((count, 1, 1), 2.0)
    weights[0] = 1.0
    if length % 2 == 0:
        weights[-1] = 1.0
    wide = computed_as(x.dtype)
    table = b.constant(weights, wide)
    weighted = b.elementwise(lambda s, w: s * w, half, table, dtype=wide)
    return transform(b, resized(b, weighted, length), 1, parts=1)


def stft(b: Builder, node: Node) -> Tensor:
    """[batch, length, 1 or 2] to the transforms of its frames times the window.

    A real signal may be [batch, length].
    """
    x, step = node.input(0), node.known(1)
    if x.rank == 2:
        x = b.reshape(x, (*x.shape, 1))
    window, given = node.optional(2), node.known(3)
    assert step is not None
    stride, (batch, length, parts) = int(step.reshape(-1)[0]), x.shape
    size = window.shape[0] if window is not None else length
    if given is not None:
        size = int(given.reshape(-1)[0])
    frames = (length - size) // stride + 1
    if frames == 1:
        # Its loop has one step and disappears: what is left of x tells the extent.
        x = b.slice(x, [0, 0, 0], (batch, size, parts))
    wide = computed_as(x.dtype)
    d = [ir.AffineDimExpr.get(i) for i in range(4)]
    inputs = [(x, Map.get(4, 0, [d[0], d[1] * stride + d[2], d[3]]))]
    if window is not None:
        inputs.append((window, Map.get(4, 0, [d[2]])))
    shape = (batch, frames, size, parts)
    seen = b.generic(
        inputs,
        [(Tensor(shape, wide, b.empty(shape, wide)), Map.get_identity(4))],
        [PARALLEL] * 4,
        lambda s, *w: s * w[0] if len(w) > 1 else s,
    )[0]
    count = size // 2 + 1 if node.int("onesided", 1) else size
    view = b.reshape(seen, (batch * frames, size, 1, parts))
    made = transform(b, view, -1, count)
    return b.cast(b.reshape(made, (batch, frames, count, 2)), x.dtype)


OPERATORS = {"DFT": dft, "STFT": stft}
