"""Shifts of integers: torch's have a meaning for counts below 0 and of all bits too."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from nanoloom.frontend.torch.call import Call
from nanoloom.frontend.torch.elementwise import FLOATS, is_unsigned, sides

T = ir.DataType


def sides_of(call: Call) -> tuple[ir.Value, ir.Value, int]:
    """The number, how far it is shifted, and how many bits it has."""
    if call.dtype in FLOATS or call.dtype == T.BOOL:
        raise call.refuse("shifts what is no integer")
    x, far = sides(call)
    return x, far, call.dtype.bitwidth


def within(call: Call, far: ir.Value, bits: int, least: int) -> ir.Value:
    """The count, or as many as `least` where it is negative or of all bits."""
    w, dtype = call.w, call.dtype
    below = w.typed(T.BOOL, "Less", far, w.constant(bits, dtype))
    if not is_unsigned(dtype):
        below = w(
            "And", below,
            w.typed(T.BOOL, "GreaterOrEqual", far, w.constant(0, dtype)),
        )  # fmt: skip
    return w.typed(dtype, "Where", below, far, w.constant(least, dtype))


def left(call: Call) -> ir.Value:
    """Times a power of two, which wraps around; nothing stays of far ones."""
    w, (x, far, bits) = call.w, sides_of(call)
    powers = [(1 << n) & ((1 << bits) - 1) for n in range(bits)] + [0]
    numbers = np.array(powers, np.uint64).astype(call.dtype.numpy())
    at = w.cast(within(call, far, bits, bits), T.INT64)
    return w("Mul", x, w("Gather", w.constant(numbers, call.dtype), at, axis=0))


def right(call: Call) -> ir.Value:
    """The sign moves in from the left: ~(~x >> n) of negative numbers."""
    w, (x, far, bits) = call.w, sides_of(call)
    if is_unsigned(call.dtype):
        some = within(call, far, bits, bits - 1)
        whole = w.typed(T.BOOL, "Equal", some, far)
        moved = w("BitShift", x, some, direction="RIGHT")
        return w.typed(call.dtype, "Where", whole, moved, w.constant(0, call.dtype))
    plain = T[f"U{call.dtype.name}"]
    negative = w.typed(T.BOOL, "Less", x, w.constant(0, call.dtype))
    turned = w.typed(call.dtype, "Where", negative, w("BitwiseNot", x), x)
    by = w.cast(within(call, far, bits, bits - 1), plain)
    moved = w("BitShift", w.cast(turned, plain), by, direction="RIGHT")
    found = w.cast(moved, call.dtype)
    return w.typed(call.dtype, "Where", negative, w("BitwiseNot", found), found)


OPERATORS = {
    "__lshift__": left, "bitwise_left_shift": left,
    "__rshift__": right, "bitwise_right_shift": right,
}  # fmt: skip
