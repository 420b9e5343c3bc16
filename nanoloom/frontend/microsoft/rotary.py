"""Positions of tokens as rotations of queries and keys."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from nanoloom.frontend.microsoft.replacement import Refused, Replacement


def rotary_embedding(b: Replacement) -> ir.Value:
    """ONNX's own, of [batch, length, heads * size] or [batch, heads, length, size]."""
    b.require("is_packed_batching", 0)
    if (scale := b.float("scale", 1.0)) != 1.0:
        raise Refused(f"its attribute scale = {scale} is not supported")
    x, places, cosines, sines = b.input(0), b.input(1), b.input(2), b.input(3)
    width, count = b.int("rotary_embedding_dim", 0), b.int("num_heads", 0)
    is_flat = b.rank(x) == 3
    if b.rank(places) == 1:
        places = places_from(b, places, x, axis=1 if is_flat else 2)
    if is_flat and not count:
        count = heads_of(b, x, cosines)
    return b.op(
        "RotaryEmbedding", x, cosines, sines, places,
        interleaved=b.int("interleaved", 0), rotary_embedding_dim=width or None,
        num_heads=count if is_flat else None,
    )  # fmt: skip


def heads_of(b: Replacement, x: ir.Value, cosines: ir.Value) -> int:
    """How many there are, if all of each is rotated."""
    width, half = b.extent(x, -1), b.extent(cosines, -1)
    if width is None or not half:
        raise Refused(
            "its attribute num_heads is 0, and the sizes that tell are not known"
        )
    return width // (2 * half)


def places_from(b: Replacement, first: ir.Value, x: ir.Value, *, axis: int) -> ir.Value:
    """[batch, length] of places, one behind the other from the first, a list of one.

    axis: of x, along which the tokens lie.
    """
    batch, count = b.op("Shape", x, end=1), b.op("Shape", x, start=axis, end=axis + 1)
    zero, one = (b.constant(np.array(n, np.int64)) for n in (0, 1))
    steps = b.op("Range", zero, b.op("Squeeze", count, b.numbers(0)), one)
    row = b.op("Unsqueeze", b.op("Add", steps, first), b.numbers(0))
    return b.op("Expand", row, b.op("Concat", batch, count, axis=0))


OPERATORS = {"RotaryEmbedding": rotary_embedding}
