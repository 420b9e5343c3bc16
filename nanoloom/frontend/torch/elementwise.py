"""Functions of elements: arithmetic, bits, casts, choices."""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir

from nanoloom.frontend.torch.call import Call

T = ir.DataType
FLOATS = {T.FLOAT, T.DOUBLE, T.FLOAT16, T.BFLOAT16}
SHORT = {T.INT8, T.UINT8, T.INT16, T.UINT16}

# The same function under another name: of the result's element type.
UNARY = {
    "abs": "Abs", "exp": "Exp", "log": "Log", "sqrt": "Sqrt",
    "sin": "Sin", "cos": "Cos", "tan": "Tan", "asin": "Asin", "acos": "Acos",
    "atan": "Atan", "sinh": "Sinh", "cosh": "Cosh", "tanh": "Tanh", "asinh": "Asinh",
    "acosh": "Acosh", "atanh": "Atanh", "erf": "Erf", "sigmoid": "Sigmoid",
    "reciprocal": "Reciprocal",
}  # fmt: skip
ROUNDING = {"floor": "Floor", "ceil": "Ceil"}
BITWISE = {"bitwise_and": "And", "bitwise_or": "Or", "bitwise_xor": "Xor"}
SAME = (
    "alias", "clone", "contiguous", "detach", "detach_", "lift_fresh_copy",
    "lift_fresh", "lift", "positive", "resolve_conj", "resolve_neg", "view_as_self",
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


def scaled(call: Call, value: ir.Value) -> ir.Value:
    alpha = call.args.get("alpha", 1)
    if isinstance(alpha, int | float) and alpha == 1:
        return value
    op = "And" if value.dtype == T.BOOL else "Mul"
    return call.w(op, value, call.of(alpha, value.dtype))


def add(call: Call) -> ir.Value:
    a, b = sides(call)
    if call.dtype == T.BOOL:
        return call.w("Or", a, scaled(call, b))
    return call.w("Add", a, scaled(call, b))


def sub(call: Call) -> ir.Value:
    a, b = sides(call)
    return call.w("Sub", a, scaled(call, b))


def rsub(call: Call) -> ir.Value:
    a, b = sides(call)
    return call.w("Sub", b, scaled(call, a))


def mul(call: Call) -> ir.Value:
    return call.w("And" if call.dtype == T.BOOL else "Mul", *sides(call))


def is_unsigned(dtype: ir.DataType) -> bool:
    return dtype.name.startswith("UINT")


def negative(call: Call) -> ir.Value:
    """ONNX negates no unsigned numbers; torch wraps them around."""
    x = call.value("self", call.dtype)
    if is_unsigned(call.dtype):
        return call.w("Sub", call.w.constant(0, call.dtype), x)
    return call.w("Neg", x)


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
    dtype = T.INT32 if call.dtype in SHORT else call.dtype  # which ONNX has no power of
    made = call.w("Pow", call.value("self", dtype), call.value("exponent", dtype))
    return call.w.cast(made, call.dtype)


def extreme(op: str) -> Callable[[Call], ir.Value]:
    def made(call: Call) -> ir.Value:
        found = call.w(op, *sides(call, comparable(call.dtype)))
        return call.w.cast(found, call.dtype)

    return made


def known_extreme(op: str) -> Callable[[Call], ir.Value]:
    """fmax and fmin: NaN only where both are."""

    def made(call: Call) -> ir.Value:
        if call.dtype not in FLOATS:
            return extreme(op)(call)
        w, (a, b) = call.w, sides(call)
        found = w.typed(call.dtype, "Where", w("IsNaN", b), a, w(op, a, b))
        return w.typed(call.dtype, "Where", w("IsNaN", a), b, found)

    return made


def bitwise(op: str) -> Callable[[Call], ir.Value]:
    return lambda call: call.w(
        op if call.dtype == T.BOOL else f"Bitwise{op}", *sides(call)
    )


def bitwise_not(call: Call) -> ir.Value:
    op = "Not" if call.dtype == T.BOOL else "BitwiseNot"
    return call.w(op, call.value("self"))


def sign(call: Call) -> ir.Value:
    """0 of NaN, where ONNX's Sign is NaN."""
    x, w = call.value("self"), call.w
    if call.dtype not in FLOATS:
        return x if call.dtype == T.BOOL else w("Sign", x)
    zero = w.constant(0, call.dtype)
    sides = [w.typed(T.BOOL, op, x, zero) for op in ("Greater", "Less")]
    return w("Sub", *(w.cast(side, call.dtype) for side in sides))


def rsqrt(call: Call) -> ir.Value:
    return call.w("Reciprocal", call.w("Sqrt", call.value("self", call.dtype)))


def clamp(call: Call) -> ir.Value:
    """NaN stays NaN; a bound below the other one wins, as the last."""
    dtype = comparable(call.dtype)
    x = call.value("self", dtype)
    for name, op in (("min", "Max"), ("max", "Min")):
        if call.has(name):
            x = call.w(op, x, call.value(name, dtype))
    return call.w.cast(x, call.dtype)


def comparable(dtype: ir.DataType) -> ir.DataType:
    """ONNX has no order of bool."""
    return T.UINT8 if dtype == T.BOOL else dtype


def where(call: Call) -> ir.Value:
    if "self" not in call.args:
        raise call.refuse("gives places, by its decomposition")
    condition = call.w.cast(call.value("condition"), T.BOOL)
    return call.w.typed(call.dtype, "Where", condition, *sides(call))


def masked_fill(call: Call) -> ir.Value:
    mask = call.w.cast(call.value("mask"), T.BOOL)
    x, filled = call.value("self", call.dtype), call.value("value", call.dtype)
    return call.w.typed(call.dtype, "Where", mask, filled, x)


def same(call: Call) -> ir.Value:
    return call.value("self")


def cast(call: Call) -> ir.Value:
    """Every way to change the element type; where and how it is stored is nothing."""
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
    **{name: bitwise(op) for name, op in BITWISE.items()},
    **dict.fromkeys(SAME, same),
    "neg": negative, "round": round_even,
    "add": add, "sub": sub, "rsub": rsub,
    "mul": mul, "multiply": mul, "pow": power,
    "maximum": extreme("Max"), "minimum": extreme("Min"),
    "fmax": known_extreme("Max"), "fmin": known_extreme("Min"),
    "bitwise_not": bitwise_not, "sign": sign,
    "sgn": sign, "rsqrt": rsqrt, "clamp": clamp, "clamp_min": clamp, "clamp_max": clamp,
    "where": where, "masked_fill": masked_fill,
    "_to_copy": cast, "to": cast, "type_as": cast,
    "fill": fill, "copy": copy,
}  # fmt: skip
