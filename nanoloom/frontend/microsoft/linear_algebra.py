"""Inverses of matrices."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from nanoloom.frontend.microsoft.replacement import Replacement

WIDE = ir.DataType.FLOAT  # in which halves are eliminated


def inverse(b: Replacement) -> ir.Value:
    """Of each matrix [..., n, n]: Gauss-Jordan elimination with row pivots.

    A Loop over columns turns [A, I] into [I, inverse of A].
    """
    x = b.input(0)
    kind = b.dtype(x)
    wide = x if kind.bitwidth >= WIDE.bitwidth else b.op("Cast", x, to=int(WIDE))
    size, rows = row_numbers(b, wide)
    unit = b.op("Equal", b.op("Unsqueeze", rows, b.numbers(1)), rows)
    unit = b.op("Cast", unit, to=int(b.dtype(x) if wide is x else WIDE))
    both = b.op("Concat", wide, b.op("Expand", unit, b.op("Shape", wide)), axis=-1)
    done = b.loop(size, both, lambda k, sofar: eliminated(b, sofar, rows, k))
    made = b.op(
        "Slice", done, b.op("Reshape", size, b.numbers(1)), b.numbers(2**62),
        b.numbers(-1),
    )  # fmt: skip
    return made if wide is x else b.op("Cast", made, to=int(kind))


def row_numbers(b: Replacement, x: ir.Value) -> tuple[ir.Value, ir.Value]:
    """The extent of the last axis, a scalar; and 0 to it."""
    size = b.op("Squeeze", b.op("Shape", x, start=-1), b.numbers(0))
    zero, one = (b.constant(np.array(n, np.int64)) for n in (0, 1))
    return size, b.op("Range", zero, size, one)


def eliminated(b: Replacement, both: ir.Value, rows: ir.Value, k: ir.Value) -> ir.Value:
    """Column k of rows [..., n, 2n] becomes that of the unit matrix."""
    last = b.numbers(-1)
    column = b.op("Gather", both, k, axis=-1)
    free = b.op("GreaterOrEqual", rows, k)
    sizes = b.op("Where", free, b.op("Abs", column), b.op("CastLike", last, column))
    pivot = b.op("ArgMax", sizes, axis=-1, keepdims=1)
    is_turn = b.op("Equal", rows, k)
    others = b.op("Where", b.op("Equal", rows, pivot), k, rows)
    order = b.op("Where", is_turn, pivot, others)
    wide_order = b.op("Expand", b.op("Unsqueeze", order, last), b.op("Shape", both))
    moved = b.op("GatherElements", both, wide_order, axis=-2)
    shares = b.op("GatherElements", column, order, axis=-1)
    top = b.op("Unsqueeze", b.op("Gather", shares, k, axis=-1), last)
    row = b.op("Div", b.op("Gather", moved, k, axis=-2), top)
    row = b.op("Unsqueeze", row, b.numbers(-2))
    left = b.op("Sub", moved, b.op("Mul", b.op("Unsqueeze", shares, last), row))
    return b.op("Where", b.op("Unsqueeze", is_turn, last), row, left)


OPERATORS = {"Inverse": inverse}
