"""The phases of a transposed convolution as products: those of as many taps are one.

x: [n, s..., c], w: [c, f / groups, (j, r)...], the result [n, (q * r)..., f].  Phase r
of place q is the sum over j of x[q + j] w[j, r].  Where filters end within a step, the
last phases have a tap less: they are a product of their own, which multiplies no zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from nanoloom.graph.taps_in_product import phases_in_vector
from nanoloom.ir.mlir import ir
from nanoloom.linalg.builder.builder import (
    PARALLEL,
    REDUCTION,
    Builder,
    Map,
    computed_as,
)
from nanoloom.linalg.builder.scalar import Scalar
from nanoloom.linalg.builder.tensor import Tensor


@dataclass(frozen=True)
class Part:
    """Phases along an axis that as many taps reach: all but the first `skipped`.

    first, count: of the phases.
    """

    first: int
    count: int
    skipped: int
    taps: int


def parts_of(span: int, stride: int) -> list[Part]:
    """The last phases have one tap less where filters end within a step."""
    taps, full = -(-span // stride), span % stride
    if full == 0:
        return [Part(0, stride, 0, taps)]
    return [Part(0, full, 0, taps), Part(full, stride - full, 1, taps - 1)]


def contract(
    b: Builder,
    x: Tensor,
    w: Tensor,
    counts: Sequence[int],
    spans: Sequence[int],
    groups: int,
) -> Tensor:
    """[n, s..., c], [c, f / groups, (j, r)...] to [n, (q * r)..., f].

    x is padded so that place q + j is there.  spans: how far the taps reach along each
    axis.  Phases that lie beside the features in a vector stay together, zeros among
    their taps or not.
    """
    n, made, strides = x.shape[0], w.shape[1], w.shape[3::2]
    joined = phases_in_vector(made, strides) if groups == 1 else 0
    whole = [
        Part(0, s, 0, taps) for s, taps in zip(strides, w.shape[2::2], strict=True)
    ]
    split = [parts_of(*axis) for axis in zip(spans, strides, strict=True)]
    apart = len(strides) - joined
    axes = [*split[:apart], *([part] for part in whole[apart:])]
    parts = [found for found in product(*axes) if all(p.taps for p in found)]
    if all(len(found) == 1 for found in axes):
        result = contract_part(b, x, w, counts, groups, joined)
    else:
        pairs = [d for pair in zip(counts, strides, strict=True) for d in pair]
        shape, wide = (n, *pairs, groups * made), computed_as(x.dtype)
        reached = all(p.taps for found in axes for p in found)
        empty = b.tensor(b.empty(shape, wide), wide) if reached else None
        result = b.full(shape, 0, wide) if empty is None else empty
        for part in parts:
            seen, own = operands(b, x, w, counts, part)
            own_phases = contract_part(b, seen, own, counts, groups, joined)
            places = [d for p in part for d in (0, p.first)]
            result = b.insert(own_phases, result, [0, *places, 0])
    lengths = [q * s for q, s in zip(counts, strides, strict=True)]
    return b.reshape(result, (n, *lengths, groups * made))


def operands(
    b: Builder, x: Tensor, w: Tensor, counts: Sequence[int], part: Sequence[Part]
) -> tuple[Tensor, Tensor]:
    """What some phases read of x and w."""
    size = [q + p.taps - 1 for q, p in zip(counts, part, strict=True)]
    skipped = [p.skipped for p in part]
    starts = [d for p in part for d in (p.skipped, p.first)]
    taken = [d for p in part for d in (p.taps, p.count)]
    return (
        b.slice(x, [0, *skipped, 0], (x.shape[0], *size, x.shape[-1])),
        b.slice(w, [0, 0, *starts], (*w.shape[:2], *taken)),
    )


def contract_part(
    b: Builder, x: Tensor, w: Tensor, counts: Sequence[int], groups: int, joined: int
) -> Tensor:
    """[n, s..., c], [c, f / groups, (j, r)...] to [n, (q, r)..., f].

    Loops: n, (q, r)..., group, f; j..., c.
    Few features are one loop with as many of the last phases as a vector holds.
    """
    wide, rank = computed_as(x.dtype), len(counts)
    n, *size, channels = x.shape
    made, phases = w.shape[1], w.shape[3::2]
    if joined:
        w = with_features(b, w, joined)
    steps, features = w.shape[3::2], w.shape[1]
    group = [groups] if groups > 1 else []
    x = b.reshape(x, (n, *size, *group, channels // groups))
    w = b.reshape(w, (*group, channels // groups, *w.shape[1:]))
    pairs = [d for pair in zip(counts, steps, strict=True) for d in pair]
    out = b.full((n, *pairs, *group, features), 0, wide)
    free = out.rank
    at = [ir.AffineDimExpr.get(d) for d in range(free + rank + 1)]
    between, feature, channel = at[1 + 2 * rank : free - 1], at[free - 1], at[-1]
    x_map = [at[0], *[at[1 + 2 * i] + at[free + i] for i in range(rank)]]
    w_map = [*between, channel, feature]
    for i in range(rank):
        w_map += [at[free + i], at[2 + 2 * i]]

    def body(element: Scalar, weight: Scalar, total: Scalar) -> Scalar:
        return total + element * weight

    result = b.generic(
        [
            (x, Map.get(len(at), 0, [*x_map, *between, channel])),
            (w, Map.get(len(at), 0, w_map)),
        ],
        [(out, Map.get(len(at), 0, at[:free]))],
        [PARALLEL] * free + [REDUCTION] * (rank + 1),
        body,
    )[0]
    if joined > 1:
        result = behind_pixels(b, result, phases[-joined:], made)
    shape = [d for pair in zip(counts, phases, strict=True) for d in pair]
    return b.reshape(result, (n, *shape, groups * made))


def with_features(b: Builder, w: Tensor, joined: int) -> Tensor:
    """[c, f, (j, r)...] with the last phases beside the features, which lie behind:
    [c, (r... f), (j, r or 1)...]."""
    taken = range(w.rank - 2 * joined + 1, w.rank, 2)
    others = [d for d in range(2, w.rank) if d not in taken]
    turned = b.transpose(w, [0, *taken, 1, *others])
    features = prod(w.shape[d] for d in (*taken, 1))
    steps = [1 if d in taken else w.shape[d] for d in range(2, w.rank)]
    return b.reshape(turned, (w.shape[0], features, *steps))


def behind_pixels(
    b: Builder, made: Tensor, phases: Sequence[int], features: int
) -> Tensor:
    """[..., (q, 1)..., (r... f)] with each phase behind its pixels: (q, r)..., f."""
    *outer, _ = made.shape
    joined = len(phases)
    first = len(outer) - 2 * joined
    pixels = outer[first::2]
    split = b.reshape(made, (*outer[:first], *pixels, *phases, features))
    pairs = [d for i in range(joined) for d in (first + i, first + joined + i)]
    return b.transpose(split, [*range(first), *pairs, split.rank - 1])
