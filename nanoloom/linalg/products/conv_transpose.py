"""ConvTranspose: the output phases of a strided transpose as contractions.

Place o of the full result is stride * q + r.  Tap k reaches it from x[q - j] where
k == stride * j + r, so for each phase r it is a convolution with stride 1, and all
phases of as many taps are one contraction into their part of [n, (q, r)..., f], which
is [n, o..., f].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

import numpy as np

from nanoloom.graph.taps_in_product import TAPS_IN_PRODUCT
from nanoloom.linalg.builder.builder import Builder
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.overlapping_blocks import Axis
from nanoloom.linalg.builder.tensor import Tensor, changed
from nanoloom.linalg.builder.window import (
    from_channels_last,
    spatial_size,
    to_channels_last,
)
from nanoloom.linalg.products.added_taps import added_taps
from nanoloom.linalg.products.convolution import add_bias
from nanoloom.linalg.products.transposed_phases import contract
from nanoloom.linalg.products.transposed_planes import phases_of_planes
from nanoloom.weights.chunked_conversion import Stored
from nanoloom.weights.weight import Derivation, Shape


def conv_transpose(b: Builder, node: Node) -> Tensor:
    """The gradient of Conv by its input; weights [c, f / groups, kernel...]."""
    x, w = node.input(0), node.input(1)
    rank = w.rank - 2
    strides = node.ints("strides") or [1] * rank
    dilations = node.ints("dilations") or [1] * rank
    spans = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilations, strict=True)]
    size = spatial_size(node, x)
    low, shape = result_extents(node, size, spans, strides)
    groups, bias = node.int("group", 1), node.optional(2)
    if node.int(TAPS_IN_PRODUCT):
        steps = [-(-o // s) for o, s in zip(shape, strides, strict=True)]
        rows = w.shape[2:], size, strides, dilations, low, shape, steps
        axes = [Axis(*row) for row in zip(*rows, strict=True)]
        if groups == x.shape[1] == w.shape[1] * groups:
            every = [s // gcd(s, d) for s, d in zip(strides, dilations, strict=True)]
            filters = phases(b, w, w.shape[2:], every, [1] * rank)
            summed = phases_of_planes(b, x, filters, axes)
        else:
            summed = added_taps(b, x, w, axes, groups)
        return add_bias(b, summed, bias and in_planes(b, bias, rank), x.dtype)
    flipped = phases(b, w, spans, strides, dilations)
    taps = flipped.shape[2::2]
    counts = [-(-(a + o) // s) for a, o, s in zip(low, shape, strides, strict=True)]
    last = to_channels_last(b, node, x)
    parts = zip(size, counts, taps, strict=True)
    size = [min(s, q) if j == 1 else s for s, q, j in parts]  # no loop tells the extent
    read = (last.shape[0], *size, last.shape[-1])
    last = last if read == last.shape else b.slice(last, [0] * last.rank, read)
    before = [0, *[j - 1 for j in taps], 0]
    after = [0, *[max(q - s, 0) for q, s in zip(counts, size, strict=True)], 0]
    padded = b.pad(last, before, after)
    full = contract(b, padded, flipped, counts, spans, groups)
    whole = (x.shape[0], *shape, full.shape[-1])
    if full.shape != whole:
        full = b.slice(full, [0, *low, 0], whole)
    made = add_bias(b, full, bias, x.dtype)
    return from_channels_last(b, node, made)


def in_planes(b: Builder, bias: Tensor, rank: int) -> Tensor:
    """A number for each channel, as it is added to planes."""
    return b.reshape(bias, (*bias.shape, *(1,) * rank))


def result_extents(
    node: Node, size: Sequence[int], spans: Sequence[int], strides: Sequence[int]
) -> tuple[list[int], list[int]]:
    """What is cut off in front of the full result, and what stays, along each axis."""
    rank, mode = len(size), node.string("auto_pad", "NOTSET")
    extra = node.ints("output_padding") or [0] * rank
    full = [
        (s - 1) * stride + more + span
        for s, stride, more, span in zip(size, strides, extra, spans, strict=True)
    ]
    wanted = node.ints("output_shape")[-rank:]
    if not wanted and mode in ("SAME_UPPER", "SAME_LOWER"):
        gaps = any(span < stride for span, stride in zip(spans, strides, strict=True))
        if gaps:
            raise node.unsupported(
                f"ONNX gives two sizes for auto_pad {mode} with filters smaller than"
                " strides",
                "write pads instead of auto_pad",
            )
        wanted = [s * stride for s, stride in zip(size, strides, strict=True)]
    if not wanted:
        pads = node.ints("pads") or [0] * (2 * rank)
        low, high = pads[:rank], pads[rank:]
        return low, [f - a - z for f, a, z in zip(full, low, high, strict=True)]
    total = [max(f - o, 0) for f, o in zip(full, wanted, strict=True)]
    if mode == "SAME_UPPER":
        return [t // 2 for t in total], wanted
    return [t - t // 2 for t in total], wanted


def phases(
    b: Builder,
    w: Tensor,
    spans: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
) -> Tensor:
    """Weights [c, f, kernel...] as [c, f, (j, r)...]: j descends, zeros fill up.

    Constant weights are rearranged by numpy when they are packed; others at run time.
    """
    taps = [-(-span // s) for span, s in zip(spans, strides, strict=True)]
    whole = [*w.shape[:2], *[j * s for j, s in zip(taps, strides, strict=True)]]
    pairs = [d for pair in zip(taps, strides, strict=True) for d in pair]
    split = (*w.shape[:2], *pairs)
    turned = range(2, len(split), 2)
    if w.is_constant:
        return changed(w, Phases(tuple(strides), tuple(dilations)))
    wide = spread(b, w, [1, 1, *dilations])
    high = [a - c for a, c in zip(whole, wide.shape, strict=True)]
    apart = b.reshape(b.pad(wide, [0] * w.rank, high), split)
    starts = [s - 1 if d in turned else 0 for d, s in enumerate(split)]
    steps = [-1 if d in turned else 1 for d in range(len(split))]
    return b.slice(apart, starts, split, steps)


@dataclass(frozen=True)
class Phases(Derivation):
    """Weights [c, f, kernel...] as [c, f, (j, r)...]: j descends, zeros fill up."""

    strides: tuple[int, ...]
    dilations: tuple[int, ...]

    def __str__(self) -> str:
        return f"phases{list(self.strides)}{list(self.dilations)}"

    def shape(self, given: Shape) -> Shape:
        pairs = zip(self.spans(given), self.strides, strict=True)
        return (*given[:2], *(d for span, s in pairs for d in (-(-span // s), s)))

    def spans(self, given: Shape) -> list[int]:
        """How far the taps reach along each axis."""
        return [(k - 1) * d + 1 for k, d in zip(given[2:], self.dilations, strict=True)]

    def of(self, array: Stored) -> Stored:
        split, spans = self.shape(array.shape), self.spans(array.shape)
        pairs = zip(split[2::2], split[3::2], strict=True)
        wide = np.zeros((*split[:2], *(j * s for j, s in pairs)), array.dtype)
        places = [slice(0, n, d) for n, d in zip(spans, self.dilations, strict=True)]
        wide[(slice(None), slice(None), *places)] = array
        return np.flip(wide.reshape(split), tuple(range(2, len(split), 2))).copy()


def spread(b: Builder, x: Tensor, steps: Sequence[int]) -> Tensor:
    """x with steps - 1 zeros after each element but the last, along each axis."""
    if all(step == 1 for step in steps):
        return x
    narrow = [d for size in x.shape for d in (size, 1)]
    wide = [d for size, step in zip(x.shape, steps, strict=True) for d in (size, step)]
    high = [a - c for a, c in zip(wide, narrow, strict=True)]
    padded = b.pad(b.reshape(x, narrow), [0] * len(narrow), high)
    whole = b.reshape(padded, [s * k for s, k in zip(x.shape, steps, strict=True)])
    shape = [(s - 1) * k + 1 for s, k in zip(x.shape, steps, strict=True)]
    return b.slice(whole, [0] * x.rank, shape)


OPERATORS = {"ConvTranspose": conv_transpose}
