"""Quotients, what is left of them, and their whole parts, as torch rounds and signs."""

from __future__ import annotations

import onnx_ir as ir

from nanoloom.frontend.torch.call import Call
from nanoloom.frontend.torch.elementwise import FLOATS, is_unsigned, sides

T = ir.DataType


def div(call: Call) -> ir.Value:
    mode = call["rounding_mode"]
    a, b = sides(call)
    if mode is None:
        return call.w("Div", a, b)
    if call.dtype not in FLOATS:
        return call.w("Div", a, b) if mode == "trunc" else floor_divided(call, a, b)
    if mode == "floor":
        return floor_of_floats(call, a, b)
    return truncated(call, call.w("Div", a, b))


def floor_divided(call: Call, a: ir.Value, b: ir.Value) -> ir.Value:
    """Integers; ONNX's quotient is rounded to zero: one too much below it."""
    w, dtype = call.w, call.dtype
    quotient = w("Div", a, b)
    if is_unsigned(dtype):
        return quotient
    zero = w.constant(0, dtype)
    signs = [w.typed(T.BOOL, "Less", x, zero) for x in (a, b)]
    rest = w("Not", w.typed(T.BOOL, "Equal", w("Mod", a, b), zero))
    below = w("And", w.typed(T.BOOL, "Xor", *signs), rest)
    return w("Sub", quotient, w.cast(below, dtype))


def floor_divide(call: Call) -> ir.Value:
    a, b = sides(call)
    if call.dtype in FLOATS:
        return floor_of_floats(call, a, b)
    return floor_divided(call, a, b)


def floor_of_floats(call: Call, a: ir.Value, b: ir.Value) -> ir.Value:
    """The floor of the exact quotient, which may be rounded up to the next number.

    0 has the sign of the quotient.
    """
    w, dtype = call.w, call.dtype
    rest, quotient = w("Mod", a, b, fmod=1), w("Div", a, b)
    exact = w("Div", w("Sub", a, rest), b)  # but for rounding a whole number
    near = w("Floor", w("Add", exact, w.constant(0.5, dtype)))
    zero = w.constant(0, dtype)
    signs = [w.typed(T.BOOL, "Less", x, zero) for x in (rest, b)]
    some = w("Not", w.typed(T.BOOL, "Equal", rest, zero))
    below = w("And", w.typed(T.BOOL, "Xor", *signs), some)
    less = w("Sub", near, w.constant(1, dtype))
    found = w.typed(dtype, "Where", below, less, near)
    is_zero = [w.typed(T.BOOL, "Equal", x, zero) for x in (found, b)]
    signed = w.typed(dtype, "Where", is_zero[0], w("Mul", quotient, zero), found)
    return w.typed(dtype, "Where", is_zero[1], quotient, signed)


def truncated(call: Call, x: ir.Value) -> ir.Value:
    return call.w("Mul", call.w("Sign", x), call.w("Floor", call.w("Abs", x)))


def trunc(call: Call) -> ir.Value:
    x = call.value("self", call.dtype)
    return truncated(call, x) if call.dtype in FLOATS else x


def remainder(call: Call) -> ir.Value:
    a, b = sides(call)
    if call.dtype not in FLOATS:
        return call.w("Mod", a, b)
    # The sign of b, as torch computes it: of the remainder that has the sign of a.
    rest = call.w("Mod", a, b, fmod=1)
    zero = call.w.constant(0, call.dtype)
    negative = call.w.typed(T.BOOL, "Less", b, zero)
    other = call.w.typed(
        T.BOOL, "Xor", call.w.typed(T.BOOL, "Less", rest, zero), negative
    )
    some = call.w("Not", call.w.typed(T.BOOL, "Equal", rest, zero))
    moved = call.w("Add", rest, b)
    return call.w.typed(call.dtype, "Where", call.w("And", other, some), moved, rest)


def fmod(call: Call) -> ir.Value:
    return call.w("Mod", *sides(call), fmod=1)


OPERATORS = {
    "div": div, "divide": div, "true_divide": div, "floor_divide": floor_divide,
    "remainder": remainder, "fmod": fmod, "trunc": trunc,
}  # fmt: skip
