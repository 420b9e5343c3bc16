"""Arithmetic on one element of each input: +, -, *, /, Mod, Pow, Clip, Max, sin ..."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nanoloom.linalg.builder.builder import Builder, computed_as
from nanoloom.linalg.builder.integer_arithmetic import (
    integer_power,
    quotient,
    remainder,
)
from nanoloom.linalg.builder.narrow_rows import rows_of
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.placed_operands import combine, number_of
from nanoloom.linalg.builder.scalar import Scalar, constant, is_float, select
from nanoloom.linalg.builder.tensor import Tensor

Formula = Callable[..., Scalar]
Lower = Callable[[Builder, Node], Tensor]
FLOAT64 = np.dtype(np.float64)
SHORT_POWERS = (1, 2, 3, 4)  # exponents for which products are as good as powf


def operands(b: Builder, node: Node) -> list[Tensor]:
    """The inputs that are given; before opset 7 `axis` says where the second begins."""
    inputs = [x for x in node.inputs if x is not None]
    if node.version < 7 and node.int("broadcast") and node.has("axis"):
        x, y = inputs
        behind = x.rank - node.int("axis") % x.rank - y.rank
        return [x, b.reshape(y, (*y.shape, *(1,) * behind))]
    return inputs


def simple(formula: Formula) -> Lower:
    """A lowering without attributes: formula on the (broadcast) inputs' elements."""

    def lower(b: Builder, node: Node) -> Tensor:
        return b.elementwise(formula, *operands(b, node), dtype=node.output_dtypes[0])

    return lower


def floats(name: str) -> Lower:
    """One function of the math dialect; ONNX has Erf for integers, too."""
    lower = simple(lambda x: x.math(name))

    def checked(b: Builder, node: Node) -> Tensor:
        dtype = node.input(0).dtype
        if not is_float(dtype):
            raise node.unsupported(f"it is not there for {dtype}", "cast to float32")
        return lower(b, node)

    return checked


def variadic(formula: Callable[[Scalar, Scalar], Scalar]) -> Lower:
    """A fold over any number of inputs."""

    def body(first: Scalar, *rest: Scalar) -> Scalar:
        for other in rest:
            first = formula(first, other)
        return first

    return simple(body)


def mean(first: Scalar, *rest: Scalar) -> Scalar:
    total = first
    for other in rest:
        total = total + other
    return total / (1 + len(rest))


def sign(x: Scalar) -> Scalar:
    """-1, 0 or 1; NaN stays NaN."""
    below = select(x < 0, constant(-1, x.dtype), x)
    return select(x > 0, constant(1, x.dtype), below)


def negative(x: Scalar) -> Scalar:
    return -x


def division(b: Builder, node: Node) -> Tensor:
    known = number_of(node.input(1)) is not None
    return simple(lambda x, y: quotient(x, y, known=known))(b, node)


def mod(b: Builder, node: Node) -> Tensor:
    """fmod=1: the dividend's sign (C); fmod=0: the divisor's (Python)."""
    truncated, known = bool(node.int("fmod")), number_of(node.input(1)) is not None

    def body(x: Scalar, y: Scalar) -> Scalar:
        floats = is_float(x.dtype)
        rest = x.remainder(y) if floats else remainder(x, y, known=known)
        if truncated:
            return rest
        other_side = rest.differs(0) & (rest < 0).differs(y < 0)
        if not is_float(x.dtype):
            return select(other_side, rest + y, rest)
        zero = constant(0, x.dtype).math("copysign", y)
        return select(other_side, rest + y, select(rest.equal(0), zero, rest))

    return b.elementwise(body, node.input(0), node.input(1))


def power(b: Builder, node: Node) -> Tensor:
    """x ** y in the type that holds both, the result in the type of x."""
    x, y = node.input(0), node.input(1)
    exponent = number_of(y)
    if exponent is not None and exponent in SHORT_POWERS and x.dtype.kind != "b":
        return b.elementwise(lambda s, _: product_power(s, int(exponent)), x, y)
    if not is_float(x.dtype) and not is_float(y.dtype):
        return b.elementwise(lambda s, n: integer_power(s, n), x, y)
    if exponent == 0.5 and is_float(x.dtype):
        return b.elementwise(lambda s, _: square_root(s), x, y)
    wide = np.result_type(computed_as(x.dtype), computed_as(y.dtype))
    inner = x.dtype if wide == FLOAT64 else computed_as(x.dtype)

    def body(s: Scalar, n: Scalar) -> Scalar:
        return s.cast(wide).math("powf", n.cast(wide)).cast(inner)

    row = y.size > 1 and x.rank > 1 and y.size == y.shape[-1] == x.shape[-1]
    rows = rows_of(b, x, range(x.rank - 1)) if row and y.rank <= x.rank else None
    if rows is None:
        return b.elementwise(body, x, y)
    both = zip(rows.split(b, x), rows.spread(b, y), strict=True)
    made = [combine(b, body, one.shape, x.dtype, one, n) for one, n in both]
    return rows.join(b, made)


def product_power(x: Scalar, exponent: int) -> Scalar:
    """x to a small power by products: at most two roundings."""
    square = x if exponent == 1 else x * x
    return {1: x, 2: square, 3: square * x, 4: square * square}[exponent]


def square_root(x: Scalar) -> Scalar:
    """x ** 0.5, which differs from sqrt at -0 and at minus infinity."""
    root = (x + 0.0).math("sqrt")
    return select(x.equal(-np.inf), constant(np.inf, x.dtype), root)


def clip(b: Builder, node: Node) -> Tensor:
    """min(max(x, low), high); limits are attributes before opset 11."""
    x = node.input(0)
    low, high = node.optional(1), node.optional(2)
    if node.version < 11:
        low = limit(b, node, "min", x.dtype)
        high = limit(b, node, "max", x.dtype)
    body: Formula = clip_below
    limits = [b.reshape(t, ()) for t in (low, high) if t is not None]
    if low is None:
        body = clip_above
    elif high is not None:
        body = clip_both
    if not limits:
        return x
    return b.elementwise(body, x, *limits)


def limit(b: Builder, node: Node, name: str, dtype: np.dtype) -> Tensor | None:
    return b.constant(node.float(name), dtype) if node.has(name) else None


def clip_below(x: Scalar, low: Scalar) -> Scalar:
    return x.maximum(low)


def clip_above(x: Scalar, high: Scalar) -> Scalar:
    return x.minimum(high)


def clip_both(x: Scalar, low: Scalar, high: Scalar) -> Scalar:
    return x.maximum(low).minimum(high)


MATH = {
    "Acos": "acos", "Acosh": "acosh", "Asin": "asin", "Asinh": "asinh",
    "Atan": "atan", "Atanh": "atanh", "Ceil": "ceil", "Cos": "cos", "Cosh": "cosh",
    "Erf": "erf", "Exp": "exp", "Floor": "floor", "Log": "log", "Round": "roundeven",
    "Sin": "sin", "Sinh": "sinh", "Sqrt": "sqrt", "Tan": "tan", "Tanh": "tanh",
}  # fmt: skip

OPERATORS: dict[str, Lower] = {
    **{name: floats(function) for name, function in MATH.items()},
    "Abs": simple(lambda x: x.absolute()),
    "Add": simple(lambda x, y: x + y),
    "Clip": clip,
    "Div": division,
    "Max": variadic(lambda x, y: x.maximum(y)),
    "Mean": simple(mean),
    "Min": variadic(lambda x, y: x.minimum(y)),
    "Mod": mod,
    "Mul": simple(lambda x, y: x * y),
    "Neg": simple(negative),
    "Pow": power,
    "Reciprocal": simple(lambda x: 1 / x),
    "Sign": simple(sign),
    "Sub": simple(lambda x, y: x - y),
    "Sum": variadic(lambda x, y: x + y),
}
