"""What is added to scores of queries and keys: masks, and numbers given as such.

Scores are [batch, heads, queries, keys].
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx_ir as ir

from nanoloom.frontend.microsoft.replacement import Refused, Replacement

MASKED = -10000.0  # unless the attribute mask_filter_value says another number
LENGTH = -2  # of queries and keys [batch, heads, length, size]


def raw_mask(b: Replacement, mask: ir.Value, like: ir.Value) -> ir.Value:
    """0 where a mask [batch, keys] or [batch, queries, keys] is positive."""
    axes = {2: (1, 2), 3: (1,)}[b.rank(mask)]
    wide = b.op("Unsqueeze", mask, b.numbers(*axes))
    zero = b.constant(np.array(0, np.int32))
    return chosen(b, b.op("Greater", wide, zero), like)


def lengths_mask(b: Replacement, mask: ir.Value, keys: ir.Value) -> ir.Value:
    """0 from the first key of a row, which is 0 if none is given, to its length.

    mask: [batch] of lengths, or [2 batch] with the first keys behind them.  keys:
    [batch, heads, keys, size].
    """
    place = positions(b, keys, np.int32)
    batch = b.op("Shape", keys, end=1)
    zero = b.numbers(0)
    lengths = b.op("Slice", mask, zero, batch, zero)
    inside = b.op("Less", place, b.op("Unsqueeze", lengths, b.numbers(1, 2, 3)))
    count = b.extent(mask, 0)
    if count is None or count != b.extent(keys, 0):
        none = b.op("Expand", b.constant(np.array(0, np.int32)), batch)
        firsts = b.op("Slice", mask, batch, b.op("Add", batch, batch), zero)
        firsts = b.op("Slice", b.op("Concat", firsts, none, axis=0), zero, batch, zero)
        firsts = b.op("Unsqueeze", firsts, b.numbers(1, 2, 3))
        inside = b.op("And", inside, b.op("GreaterOrEqual", place, firsts))
    return chosen(b, inside, keys)


def padding_mask(b: Replacement, mask: ir.Value, keys: ir.Value) -> ir.Value:
    """A mask of any form that ONNX Runtime takes on CPUs."""
    rank = b.rank(mask)
    if rank == 1:
        return lengths_mask(b, mask, keys)
    if rank in (2, 3):
        return raw_mask(b, mask, keys)
    raise Refused(f"its mask {mask.name} has {rank} dimensions")


def causal_mask(b: Replacement, queries: ir.Value, keys: ir.Value) -> ir.Value:
    """0 for a query's own key and those before it; the last of both are one token."""
    kind = b.dtype(keys)
    if not kind.is_floating_point():
        raise Refused(f"its keys {keys.name} are of {kind.name}")
    lowest = float(ml_dtypes.finfo(kind.numpy()).min)
    count = length(b, queries)
    places = b.op("Add", range_of(b, count, np.int64), first_of(b, count, keys))
    own = b.op("Unsqueeze", places, b.numbers(1))
    seen = b.op("LessOrEqual", positions(b, keys, np.int64), own)
    return chosen(b, seen, keys, lowest)


def first_of(b: Replacement, count: ir.Value, keys: ir.Value) -> ir.Value:
    """How many keys are before the first query."""
    return b.op("Sub", length(b, keys), count)


def chosen(
    b: Replacement, taken: ir.Value, like: ir.Value, masked: float | None = None
) -> ir.Value:
    """0 where a key is taken, elsewhere a number that leaves nothing of it."""
    if masked is None:
        masked = b.float("mask_filter_value", MASKED)
    return b.op("Where", taken, b.scalar(0.0, like), b.scalar(masked, like))


def length(b: Replacement, x: ir.Value) -> ir.Value:
    """Of tensors [batch, heads, length, size], a list of one number."""
    return b.op("Shape", x, start=LENGTH, end=LENGTH + 1)


def positions(b: Replacement, keys: ir.Value, kind: type) -> ir.Value:
    """0, 1, 2 ... for the keys."""
    return range_of(b, length(b, keys), kind)


def range_of(b: Replacement, count: ir.Value, kind: type) -> ir.Value:
    """From 0 up to a list of one number."""
    one = b.op("Squeeze", count, b.numbers(0))
    if kind is not np.int64:
        one = b.op("Cast", one, to=int(ir.DataType.INT32))
    return b.op(
        "Range", b.constant(np.array(0, kind)), one, b.constant(np.array(1, kind))
    )
