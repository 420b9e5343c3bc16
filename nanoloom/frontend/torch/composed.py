"""Functions of elements that ONNX has not, of those that it has."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from nanoloom.frontend.torch.call import Call
from nanoloom.frontend.torch.elementwise import sides

T = ir.DataType


def atan2(call: Call) -> ir.Value:
    """The angle of (other, self): of their quotient, turned by half where other < 0."""
    w, dtype = call.w, call.dtype
    y, x = sides(call)
    zero, half = w.constant(0, dtype), w.constant(np.pi / 2, dtype)
    # -0 is below 0 here, as its reciprocal is.
    below = w.typed(T.BOOL, "Less", w("Reciprocal", y), zero)
    below = w("Or", below, w.typed(T.BOOL, "Less", y, zero))
    pi = w.constant(np.pi, dtype)
    turn = w.typed(dtype, "Where", below, w("Neg", pi), pi)
    plain = w("Atan", w("Div", y, x))
    left = w.typed(T.BOOL, "Less", w("Reciprocal", x), zero)
    left = w("Or", left, w.typed(T.BOOL, "Less", x, zero))
    turned = w.typed(dtype, "Where", left, w("Add", plain, turn), plain)
    none = [w.typed(T.BOOL, "Equal", each, zero) for each in (x, y)]
    flat = w.typed(dtype, "Where", left, turn, y)  # y is 0: its sign stays
    upright = w.typed(dtype, "Where", below, w("Neg", half), half)
    found = w.typed(dtype, "Where", none[0], upright, turned)
    return w.typed(dtype, "Where", none[1], flat, found)


def expm1(call: Call) -> ir.Value:
    """Right near 0, where exp(x) - 1 loses it: 2 * exp(x / 2) * sinh(x / 2).

    Below 0 that is Elu, which overflows nowhere.
    """
    w, dtype, x = call.w, call.dtype, call.value("self", call.dtype)
    half = w("Mul", x, w.constant(0.5, dtype))
    above = w("Mul", w("Mul", w("Exp", half), w("Sinh", half)), w.constant(2, dtype))
    positive = w.typed(T.BOOL, "Greater", x, w.constant(0, dtype))
    return w.typed(dtype, "Where", positive, above, w("Elu", x, alpha=1.0))


def log1p(call: Call) -> ir.Value:
    """Right near 0, where 1 + x loses it: x * log(u) / (u - 1), u = 1 + x rounded."""
    w, x = call.w, call.value("self", call.dtype)
    one = w.constant(1, call.dtype)
    u = w("Add", x, one)
    gap = w("Sub", u, one)
    same = w.typed(T.BOOL, "Equal", gap, w.constant(0, call.dtype))
    infinite = w.typed(T.BOOL, "Equal", u, w.constant(np.inf, call.dtype))
    usual = w("Div", w("Mul", x, w("Log", u)), gap)
    made = w.typed(call.dtype, "Where", same, x, usual)
    return w.typed(call.dtype, "Where", infinite, u, made)


OPERATORS = {"expm1": expm1, "log1p": log1p, "atan2": atan2}
