"""Operators that go element by element, with broadcasting."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper

from tests.fuzz.sketch import ALL, BOOL, FLOATS, I8, Sketch
from tests.fuzz.words import Recipe, words


def unary(s: Sketch, op: str) -> None:
    s.add(op, [s.operand(s.types(op))])


def with_factors(s: Sketch, op: str) -> None:
    """Attributes that are numbers, each there or not."""
    schema = onnx.defs.get_schema(op, s.opset)
    given = {
        name: s.real(-2, 2)
        for name, attribute in schema.attributes.items()
        if attribute.type == onnx.defs.OpSchema.AttrType.FLOAT and s.chance(0.6)
    }
    if op == "Celu":
        given = {"alpha": s.real(0.25, 2)}
    s.add(op, [s.operand(s.types(op))], **given)


def gelu(s: Sketch, op: str) -> None:
    way = s.pick([None, "none", "tanh"])
    s.add(op, [s.operand(s.types(op))], approximate=way)


def is_infinite(s: Sketch, op: str) -> None:
    array = s.array(s.shape(), s.dtype(s.types(op)))
    flat = array.reshape(-1)
    flat[::3], flat[1::4] = np.inf, -np.inf
    signs = {
        "detect_negative": s.pick([None, 0, 1]),
        "detect_positive": s.pick([None, 0, 1]),
    }
    s.add(op, [s.fresh(array)], **(signs if op == "IsInf" else {}))


def clip(s: Sketch, op: str) -> None:
    x = s.operand(s.types(op))
    dtype = s[x].dtype
    low, high = sorted([s.integer(0, 6), s.integer(0, 6)])
    ends = [s.scalar(low, dtype), s.scalar(high, dtype)]
    s.add(op, [x, *(end if s.chance(0.8) else "" for end in ends)])


def other_operand(s: Sketch, x: str, low: float = -4, high: float = 4) -> str:
    """A value of x's type that broadcasts with it."""
    array = s[x]
    if s.chance(0.3) and low == -4:
        return s.operand([array.dtype], accept=lambda y: fits(y.shape, array.shape))
    if s.chance(0.1) and low == -4:
        return x
    return s.like(s.broadcast(array.shape), array.dtype, low, high)


def fits(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    try:
        np.broadcast_shapes(one, other)
    except ValueError:
        return False
    return True


def binary(s: Sketch, op: str) -> None:
    x = s.operand(s.types(op))
    pair = [x, other_operand(s, x)]
    s.add(op, pair if s.chance(0.5) else pair[::-1])


def quotient(s: Sketch, op: str) -> None:
    x = s.operand(s.types(op))
    whole = s[x].dtype.kind in "iu"
    y = other_operand(s, x, 1, 9) if whole else other_operand(s, x)
    floats = {"fmod": 1} if not whole or s.chance(0.3) else {}
    s.add(op, [x, y], **(floats if op == "Mod" else {}))


def power(s: Sketch, op: str) -> None:
    x = s.operand(s.types(op), accept=lambda a: bool((np.abs(a) < 50).all()))
    other = s.pick(s.types(op, 1)) if s.chance(0.3) else s[x].dtype
    low = 0 if other.kind in "iu" else -2
    s.add(op, [x, s.fresh(s.array(s.broadcast(s[x].shape), other, low, 3))])


def shift(s: Sketch, op: str) -> None:
    x = s.operand(s.types(op))
    width = 8 * s[x].dtype.itemsize
    y = s.array(s.broadcast(s[x].shape), s[x].dtype, 0, width - 1)
    s.add(op, [x, s.fresh(y)], direction=s.pick(["LEFT", "RIGHT"]))


def variadic(s: Sketch, op: str) -> None:
    x = s.operand(s.types(op))
    others = [other_operand(s, x) for _ in range(s.integer(0, 3))]
    s.add(op, [x, *others])


def slopes(s: Sketch, op: str) -> None:
    x = s.operand(s.types(op))
    shape = tuple(1 if s.chance(0.4) else d for d in s[x].shape)
    shape = shape[s.integer(0, len(shape)) :]
    s.add(op, [x, s.like(shape, s[x].dtype)])


def where(s: Sketch, op: str) -> None:
    x = s.operand(s.types(op, 1))
    y = other_operand(s, x)
    if s.chance(0.5):
        c = s.operand([BOOL], accept=lambda c: fits(c.shape, s[x].shape))
        if fits(s[c].shape, s[x].shape):
            s.add(op, [c, x, y])
            return
    s.add(op, [s.like(s.broadcast(s[x].shape), BOOL), x, y])


def cast(s: Sketch, op: str) -> None:
    """Within the values of the narrower type: the rest is left open."""
    x = s.operand(ALL)
    to = s.dtype([d for d in ALL if d != s[x].dtype] or ALL)
    array = s[x].astype(np.float64)
    if to.kind in "iu" and array.size:
        info = np.iinfo(to)
        if array.min() <= info.min - 1 or array.max() >= info.max + 1:
            x = s.fresh(s.array(s[x].shape, s[x].dtype, 0, 100))
    kind = helper.np_dtype_to_tensor_dtype(to)
    if op == "Cast":
        s.add(op, [x], to=kind)
    else:
        s.add(op, [x, s.fresh(s.array((1,), to, 0, 1))])


def same_bits(s: Sketch, op: str) -> None:
    x = s.operand([d for d in ALL if d != BOOL])
    wide = s[x].dtype.itemsize
    same = [d for d in ALL if d.itemsize == wide and d != BOOL]
    if s[x].dtype.kind in "iu":  # no NaN with bits of its own
        same = [d for d in same if d.kind in "iu"]
    s.add(op, [x], to=helper.np_dtype_to_tensor_dtype(s.pick(same or [I8])))


def gated(s: Sketch, op: str) -> None:
    x = s.operand(FLOATS, range(1, 5), lambda a: a.shape[-1] % 2 == 0)
    if s[x].shape[-1] % 2:
        x = s.fresh(s.array((*s[x].shape[:-1], 6), s[x].dtype))
    s.add(op, [x], alpha=s.real(0.5, 2))


RECIPES: dict[str, Recipe] = {
    **dict.fromkeys(
        words("""
            Abs Acos Acosh Asin Asinh Atan Atanh BitwiseNot Ceil Cos Cosh Erf Exp Floor
            HardSwish Identity Log Mish Neg Not Reciprocal Relu Round Sigmoid Sign Sin
            Sinh Softplus Softsign Sqrt Tan Tanh
        """),
        unary,
    ),
    **dict.fromkeys(
        words("Celu Elu HardSigmoid LeakyRelu Selu Shrink Swish ThresholdedRelu"),
        with_factors,
    ),
    **dict.fromkeys(
        words("""
            Add And BitwiseAnd BitwiseOr BitwiseXor Equal Greater GreaterOrEqual Less
            LessOrEqual Mul Or Sub Xor
        """),
        binary,
    ),
    **dict.fromkeys(words("Max Mean Min Sum"), variadic),
    **dict.fromkeys(words("Div Mod"), quotient),
    **dict.fromkeys(words("IsInf IsNaN"), is_infinite),
    **dict.fromkeys(words("Cast CastLike"), cast),
    "BitCast": same_bits,
    "BitShift": shift,
    "Clip": clip,
    "Gelu": gelu,
    "PRelu": slopes,
    "Pow": power,
    "SwiGLU": gated,
    "Where": where,
}
