"""Functions of elements: arithmetic, comparisons, activations, casts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir
import torch  # pyright: ignore[reportMissingImports]

from nanoloom.frontend.torch.call import Call, fake_of
from nanoloom.frontend.torch.element_types import element_type

T = ir.DataType
FLOATS = {T.FLOAT, T.DOUBLE, T.FLOAT16, T.BFLOAT16}

# The same function under another name: of the result's element type.
UNARY = {
    "abs": "Abs", "neg": "Neg", "exp": "Exp", "log": "Log", "sqrt": "Sqrt",
    "sin": "Sin", "cos": "Cos", "tan": "Tan", "asin": "Asin", "acos": "Acos",
    "atan": "Atan", "sinh": "Sinh", "cosh": "Cosh", "tanh": "Tanh", "asinh": "Asinh",
    "acosh": "Acosh", "atanh": "Atanh", "erf": "Erf", "sigmoid": "Sigmoid",
    "reciprocal": "Reciprocal", "sign": "Sign", "sgn": "Sign",
    "relu": "Relu", "hardswish": "HardSwish", "mish": "Mish", "bitwise_not": "BitwiseNot",
}  # fmt: skip
ROUNDING = {"floor": "Floor", "ceil": "Ceil"}
COMPARISONS = {
    "eq": "Equal", "lt": "Less", "gt": "Greater", "le": "LessOrEqual",
    "ge": "GreaterOrEqual",
}  # fmt: skip
LOGIC = {"logical_and": "And", "logical_or": "Or", "logical_xor": "Xor"}
BITWISE = {"bitwise_and": "And", "bitwise_or": "Or", "bitwise_xor": "Xor"}
SAME = (
    "alias", "clone", "contiguous", "detach", "lift_fresh_copy", "lift_fresh", "lift",
    "positive", "resolve_conj", "resolve_neg", "view_as_self",
)  # fmt: skip


def unary(op: str) -> Callable[[Call], ir.Value]:
    return lambda call: call.w(op, call.value("self", call.dtype))


def rounding(op: str) -> Callable[[Call], ir.Value]:
    def made(call: Call) -> ir.Value:
        x = call.value("self", call.dtype)
        return call.w(op, x) if call.dtype in FLOATS else x

    return made


def round_even(call: Call) -> ir.Value:
    if call["decimals"]:
        raise call.refuse("rounds to decimals")
    return rounding("Round")(call)


def sides(call: Call, dtype: ir.DataType | None = None) -> tuple[ir.Value, ir.Value]:
    """Both operands in one type, the result's by default."""
    wanted = dtype or call.dtype
    return call.value("self", wanted), call.value("other", wanted)


def promoted(call: Call) -> ir.DataType:
    """The type in which torch compares: a number does not widen a tensor of its kind."""
    a, b = (fake_of(call[name]) for name in ("self", "other"))
    a, b = (float(0) if isinstance(x, torch.SymFloat) else x for x in (a, b))
    a, b = (1 if isinstance(x, torch.SymInt) else x for x in (a, b))
    return element_type(torch.result_type(a, b), call.node.name)


def scaled(call: Call, value: ir.Value) -> ir.Value:
    alpha = call.args.get("alpha", 1)
    if isinstance(alpha, int | float) and alpha == 1:
        return value
    return call.w("Mul", value, call.of(alpha, value.dtype))


def add(call: Call) -> ir.Value:
    a, b = sides(call)
    if call.dtype == T.BOOL:
        return call.w("Or", a, b)
    return call.w("Add", a, scaled(call, b))


def sub(call: Call) -> ir.Value:
    a, b = sides(call)
    return call.w("Sub", a, scaled(call, b))


def rsub(call: Call) -> ir.Value:
    a, b = sides(call)
    return call.w("Sub", b, scaled(call, a))


def mul(call: Call) -> ir.Value:
    return call.w("And" if call.dtype == T.BOOL else "Mul", *sides(call))


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
    """Integers; ONNX's quotient is rounded to zero, its remainder has the sign of b."""
    unsigned = call.dtype.name.startswith("UINT")
    if unsigned:
        return call.w("Div", a, b)
    return call.w("Div", call.w("Sub", a, call.w("Mod", a, b)), b)


def floor_divide(call: Call) -> ir.Value:
    a, b = sides(call)
    if call.dtype in FLOATS:
        return floor_of_floats(call, a, b)
    return floor_divided(call, a, b)


def floor_of_floats(call: Call, a: ir.Value, b: ir.Value) -> ir.Value:
    """The floor of the exact quotient, which may be rounded up to the next number."""
    w, dtype = call.w, call.dtype
    rest = w("Mod", a, b, fmod=1)
    exact = w("Div", w("Sub", a, rest), b)  # but for rounding a whole number
    near = w("Floor", w("Add", exact, w.constant(0.5, dtype)))
    zero = w.constant(0, dtype)
    signs = [w.typed(T.BOOL, "Less", x, zero) for x in (rest, b)]
    some = w("Not", w.typed(T.BOOL, "Equal", rest, zero))
    below = w("And", w.typed(T.BOOL, "Xor", *signs), some)
    less = w("Sub", near, w.constant(1, dtype))
    found = w.typed(dtype, "Where", below, less, near)
    by_zero = w.typed(T.BOOL, "Equal", b, zero)
    return w.typed(dtype, "Where", by_zero, w("Div", a, b), found)


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


def power(call: Call) -> ir.Value:
    """Small whole exponents as products, which are exact for negative numbers."""
    exponent = call["exponent"]
    if call.dtype in FLOATS and isinstance(exponent, int | float):
        x = call.value("self", call.dtype)
        if exponent == 2:
            return call.w("Mul", x, x)
        if exponent == 0.5:
            return call.w("Sqrt", x)
        if exponent == -0.5:
            return call.w("Reciprocal", call.w("Sqrt", x))
    base = call.value("self", call.dtype)
    return call.w("Pow", base, call.value("exponent", call.dtype))


def extreme(op: str) -> Callable[[Call], ir.Value]:
    return lambda call: call.w(op, *sides(call))


def compare(op: str) -> Callable[[Call], ir.Value]:
    def made(call: Call) -> ir.Value:
        dtype = promoted(call)
        if dtype == T.BOOL and op != "Equal":
            dtype = T.UINT8
        return call.w.typed(T.BOOL, op, *sides(call, dtype))

    return made


def unequal(call: Call) -> ir.Value:
    return call.w("Not", compare("Equal")(call))


def logic(op: str) -> Callable[[Call], ir.Value]:
    return lambda call: call.w(op, truth(call, "self"), truth(call, "other"))


def truth(call: Call, name: str) -> ir.Value:
    value = call.value(name)
    return value if value.dtype == T.BOOL else call.w.cast(value, T.BOOL)


def logical_not(call: Call) -> ir.Value:
    return call.w("Not", truth(call, "self"))


def bitwise(op: str) -> Callable[[Call], ir.Value]:
    return lambda call: call.w(
        op if call.dtype == T.BOOL else f"Bitwise{op}", *sides(call)
    )


def bitwise_not(call: Call) -> ir.Value:
    op = "Not" if call.dtype == T.BOOL else "BitwiseNot"
    return call.w(op, call.value("self"))


def sign(call: Call) -> ir.Value:
    x = call.value("self")
    return x if call.dtype == T.BOOL else call.w("Sign", x)


def rsqrt(call: Call) -> ir.Value:
    return call.w("Reciprocal", call.w("Sqrt", call.value("self", call.dtype)))


def clamp(call: Call) -> ir.Value:
    """NaN stays NaN; a bound below the other one wins, as the last."""
    x = call.value("self", call.dtype)
    for name, op in (("min", "Max"), ("max", "Min")):
        if call.has(name):
            x = call.w(op, x, call.value(name, call.dtype))
    return x


def silu(call: Call) -> ir.Value:
    x = call.value("self", call.dtype)
    return call.w("Mul", x, call.w("Sigmoid", x))


def gelu(call: Call) -> ir.Value:
    x = call.value("self", call.dtype)
    return call.w("Gelu", x, approximate=call["approximate"] or "none")


def leaky_relu(call: Call) -> ir.Value:
    slope = call.number("negative_slope")
    return call.w("LeakyRelu", call.value("self", call.dtype), alpha=float(slope))


def elu(call: Call) -> ir.Value:
    if call["scale"] != 1 or call["input_scale"] != 1:
        raise call.refuse("has scales")
    return call.w(
        "Elu", call.value("self", call.dtype), alpha=float(call.number("alpha"))
    )


def softplus(call: Call) -> ir.Value:
    x = call.value("self", call.dtype)
    beta, threshold = call.number("beta"), call.number("threshold")
    times = x if beta == 1 else call.w("Mul", x, call.of(beta, call.dtype))
    soft = call.w("Softplus", times)
    if beta != 1:
        soft = call.w("Div", soft, call.of(beta, call.dtype))
    large = call.w.typed(T.BOOL, "Greater", times, call.of(threshold, call.dtype))
    return call.w.typed(call.dtype, "Where", large, x, soft)


def hardsigmoid(call: Call) -> ir.Value:
    return call.w("HardSigmoid", call.value("self", call.dtype), alpha=1 / 6, beta=0.5)


def hardtanh(call: Call) -> ir.Value:
    low, high = call["min_val"], call["max_val"]
    x = call.w("Max", call.value("self", call.dtype), call.of(low, call.dtype))
    return call.w("Min", x, call.of(high, call.dtype))


def relu6(call: Call) -> ir.Value:
    x = call.w("Relu", call.value("self", call.dtype))
    return call.w("Min", x, call.w.constant(6, call.dtype))


def prelu(call: Call) -> ir.Value:
    x, slope = call.value("self"), call.value("weight")
    if call.input_rank("weight") == 1 and call.rank > 2:
        slope = call.w.reshape(slope, [-1, *[1] * (call.rank - 2)])
    return call.w("PRelu", x, slope)


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


def where(call: Call) -> ir.Value:
    condition = call.w.cast(call.value("condition"), T.BOOL)
    return call.w.typed(call.dtype, "Where", condition, *sides(call))


def masked_fill(call: Call) -> ir.Value:
    mask = call.w.cast(call.value("mask"), T.BOOL)
    x, filled = call.value("self", call.dtype), call.value("value", call.dtype)
    return call.w.typed(call.dtype, "Where", mask, filled, x)


def is_nan(call: Call) -> ir.Value:
    x = call.value("self")
    if x.dtype not in FLOATS:
        return call.w.typed(T.BOOL, "Not", call.w.typed(T.BOOL, "Equal", x, x))
    return call.w.typed(T.BOOL, "IsNaN", x)


def is_inf(call: Call) -> ir.Value:
    x = call.value("self")
    if x.dtype not in FLOATS:
        return is_nan(call)
    return call.w.typed(T.BOOL, "Equal", call.w("Abs", x), call.of(np.inf, x.dtype))


def same(call: Call) -> ir.Value:
    return call.value("self")


def cast(call: Call) -> ir.Value:
    """Every way to change the element type; to where and how it is stored is nothing."""
    return call.value("self", call.dtype)


def copy(call: Call) -> ir.Value:
    """src in the shape and the element type of self."""
    src = call.value("src", call.dtype)
    if call.fake("src").shape == call.fake("self").shape:
        return src
    return call.w("Expand", src, call.w.ints(call.shape))


def fill(call: Call) -> ir.Value:
    value = call.value("value", call.dtype)
    return call.w("Expand", value, call.w.ints(call.shape))


OPERATORS = {
    **{name: unary(op) for name, op in UNARY.items()},
    **{name: rounding(op) for name, op in ROUNDING.items()},
    **{name: compare(op) for name, op in COMPARISONS.items()},
    **{name: logic(op) for name, op in LOGIC.items()},
    **{name: bitwise(op) for name, op in BITWISE.items()},
    **dict.fromkeys(SAME, same),
    "round": round_even, "trunc": trunc, "add": add, "sub": sub, "rsub": rsub,
    "mul": mul, "multiply": mul, "div": div, "divide": div, "true_divide": div,
    "floor_divide": floor_divide, "remainder": remainder, "fmod": fmod, "pow": power,
    "maximum": extreme("Max"), "minimum": extreme("Min"), "ne": unequal,
    "logical_not": logical_not, "bitwise_not": bitwise_not, "sign": sign,
    "sgn": sign, "rsqrt": rsqrt, "clamp": clamp, "clamp_min": clamp, "clamp_max": clamp,
    "silu": silu, "gelu": gelu, "leaky_relu": leaky_relu, "elu": elu,
    "softplus": softplus, "hardsigmoid": hardsigmoid, "hardtanh": hardtanh,
    "relu6": relu6, "prelu": prelu, "_prelu_kernel": prelu, "log1p": log1p,
    "where": where, "masked_fill": masked_fill, "isnan": is_nan, "isinf": is_inf,
    "_to_copy": cast, "to": cast, "type_as": cast, "convert_element_type": cast,
    "fill": fill, "copy": copy,
}  # fmt: skip
