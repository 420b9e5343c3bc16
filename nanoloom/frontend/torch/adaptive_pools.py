"""Pools to a number of elements that need not divide the size.

Along an axis of n elements, window i of m is that of floor(i n / m) up to
ceil((i + 1) n / m): windows of one size or of two, which may share elements.  Each axis
is reduced by itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from nanoloom.frontend.torch.call import Call

T = ir.DataType


def windows(size: int, count: int) -> list[range]:
    return [range(i * size // count, -(-(i + 1) * size // count)) for i in range(count)]


def reduced(
    call: Call, x: ir.Value, op: str, sizes: Sequence[int], wanted: Sequence[int]
) -> ir.Value:
    """op: AveragePool or MaxPool, of the last axes of x."""
    w = call.w
    for axis, (size, count) in enumerate(zip(sizes, wanted, strict=True), -len(sizes)):
        if size == count:
            continue
        own = windows(size, count)
        widest = max(map(len, own))
        # The last element of a short window again, which no largest element minds.
        at = [[r[min(i, len(r) - 1)] for i in range(widest)] for r in own]
        behind = -1 - axis
        taken = w("Gather", x, w.constant(np.array(at)), axis=axis)
        along = w.constant([axis])  # the elements of a window are one more axis
        if op == "MaxPool":
            x = w("ReduceMax", taken, along, keepdims=0)
            continue
        inside = [[i < len(r) for i in range(widest)] for r in own]
        shape = (count, widest, *[1] * behind)
        here = w.constant(np.array(inside).reshape(shape), T.BOOL)
        zero = w.constant(0, call.dtype)
        taken = w.typed(call.dtype, "Where", here, taken, zero)
        lengths = np.array([len(r) for r in own]).reshape(count, *[1] * behind)
        total = w("ReduceSum", taken, along, keepdims=0)
        x = w("Div", total, w.constant(lengths, call.dtype))
    return x
