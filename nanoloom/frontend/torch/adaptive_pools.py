"""Pools to a number of elements that need not divide the size.

Along an axis of n elements, window i of m is that of floor(i n / m) up to
ceil((i + 1) n / m): windows of one size or of two, which may share elements.  Each axis
is reduced by itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir
import torch

from nanoloom.frontend.torch.call import Call

T = ir.DataType
Size = int | torch.SymInt


def windows(size: int, count: int) -> list[range]:
    return [range(i * size // count, -(-(i + 1) * size // count)) for i in range(count)]


def elements(own: Sequence[range]) -> list[list[int]]:
    """The places of each window; the last one of a short window stands there again,
    which no largest element minds."""
    widest = max(map(len, own))
    return [[r[min(i, len(r) - 1)] for i in range(widest)] for r in own]


def largest_with_places(
    call: Call, x: ir.Value, sizes: Sequence[int], wanted: Sequence[int]
) -> tuple[ir.Value, ir.Value]:
    """The largest element of each window of the last axes, and where it is in them."""
    w, rank = call.w, len(sizes)
    each = [windows(size, count) for size, count in zip(sizes, wanted, strict=True)]
    front = call.input_rank("self") - rank
    for axis, own in enumerate(each):  # [..., windows, elements, windows, elements]
        at = w.constant(np.array(elements(own)))
        x = w("Gather", x, at, axis=front + 2 * axis)
    axes = [*range(front), *range(front, front + 2 * rank, 2)]
    x = w("Transpose", x, perm=[*axes, *range(front + 1, front + 2 * rank, 2)])
    x = w.reshape(x, [*call.sizes.all(call.fake("self").shape[:front]), *wanted, -1])
    found = w("ReduceMax", x, w.constant([front + rank]), keepdims=0)
    left = w.typed(T.INT64, "ArgMax", x, axis=front + rank, keepdims=0)
    place, stride = w.constant(0), 1
    for axis in reversed(range(rank)):
        widest = w.constant(max(map(len, each[axis])))
        first = np.array([r[0] for r in each[axis]]).reshape(
            -1, *[1] * (rank - 1 - axis)
        )
        along = w("Add", w("Mod", left, widest), w.constant(first))
        place = w("Add", place, w("Mul", along, w.constant(stride)))
        left, stride = w("Div", left, widest), stride * sizes[axis]
    return found, place


def reduced(
    call: Call, x: ir.Value, op: str, sizes: Sequence[Size], wanted: Sequence[Size]
) -> ir.Value:
    """op: AveragePool or MaxPool, of the last axes of x."""
    for axis, (size, count) in enumerate(zip(sizes, wanted, strict=True), -len(sizes)):
        known = isinstance(size, int) and isinstance(count, int)
        if known and size == count:
            continue
        along = of_known_sizes if known else of_open_sizes
        x = along(call, x, op, axis, size, count)
    return x


def of_known_sizes(
    call: Call, x: ir.Value, op: str, axis: int, size: Size, count: Size
) -> ir.Value:
    """Each window's elements are gathered."""
    own, w = windows(int(size), int(count)), call.w
    at = elements(own)
    behind, widest = -1 - axis, len(at[0])
    taken = w("Gather", x, w.constant(np.array(at)), axis=axis)
    along = w.constant([axis])  # the elements of a window are one more axis
    if op == "MaxPool":
        return w("ReduceMax", taken, along, keepdims=0)
    inside = [[i < len(r) for i in range(widest)] for r in own]
    shape = (len(own), widest, *[1] * behind)
    here = w.constant(np.array(inside).reshape(shape), T.BOOL)
    zero = w.constant(0, call.dtype)
    taken = w.typed(call.dtype, "Where", here, taken, zero)
    lengths = np.array([len(r) for r in own]).reshape(-1, *[1] * behind)
    total = w("ReduceSum", taken, along, keepdims=0)
    return w("Div", total, w.constant(lengths, call.dtype))


def of_open_sizes(
    call: Call, x: ir.Value, op: str, axis: int, size: Size, count: Size
) -> ir.Value:
    """Each window reads all of its row, and counts what is its own."""
    w, behind = call.w, [1] * (-1 - axis)
    n, m = (call.sizes.operand(call.sizes.of(x)) for x in (size, count))
    zero, one = w.constant(0), w.constant(1)
    shape = [-1, 1, *behind]
    place = w.reshape(w("Range", zero, m, one), shape)
    first = w("Div", w("Mul", place, n), m)
    ends = w("Div", w("Sub", w("Add", w("Mul", w("Add", place, one), n), m), one), m)
    each = w.reshape(w("Range", zero, n, one), [1, -1, *behind])
    here = w("And", w("LessOrEqual", first, each), w("Less", each, ends))
    rows, along = w("Unsqueeze", x, w.constant([axis - 1])), w.constant([axis])
    fill = w.constant(-np.inf if op == "MaxPool" else 0, call.dtype)
    taken = w.typed(call.dtype, "Where", here, rows, fill)
    if op == "MaxPool":
        return w("ReduceMax", taken, along, keepdims=0)
    total = w("ReduceSum", taken, along, keepdims=0)
    lengths = w.reshape(w("Sub", ends, first), [-1, *behind])
    return w("Div", total, w.cast(lengths, call.dtype))
