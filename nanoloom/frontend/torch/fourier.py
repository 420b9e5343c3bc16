"""Fourier transforms along axes, one after the other, as ONNX's DFT."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial, reduce
from typing import Any

import numpy as np
import onnx_ir as ir

from nanoloom.frontend.torch.call import Call
from nanoloom.frontend.torch.pair import Pair

# By normalization, to which power of the number of points results are multiplied.
POWERS = (0.0, -0.5, -1.0)


def of_real(call: Call) -> Pair:
    """_fft_r2c: of the last axis said, where half of the result may be left out."""
    *others, last = call.axes("dim")
    x = call.w("Unsqueeze", call.value("self"), call.w.constant([-1]))
    half = int(bool(call["onesided"]))
    made = transformed(call, x, last, onesided=half)
    for axis in others:
        made = transformed(call, made, axis)
    return apart(call, scaled(call, made, call.fake("self").shape))


def of_complex(call: Call) -> Pair:
    """_fft_c2c, in both directions."""
    made = together(call, call.values[call.args["self"]])
    inverse = int(not call["forward"])
    for axis in call.axes("dim"):
        made = transformed(call, made, axis, inverse=inverse)
    return apart(call, scaled(call, made, call.out.shape, inverse))


def to_real(call: Call) -> ir.Value:
    """_fft_c2r: half of a spectrum whose other half mirrors it."""
    *others, last = call.axes("dim")
    made = together(call, call.values[call.args["self"]])
    for axis in others:
        made = transformed(call, made, axis, inverse=1)
    made = mirrored(call, made, last, call.size(call["last_dim_size"]))
    made = transformed(call, made, last, inverse=1)
    return apart(call, scaled(call, made, call.out.shape, inverse=1)).re


def mirrored(call: Call, x: ir.Value, axis: int, count: int | ir.Value) -> ir.Value:
    """A whole spectrum of the half that is there."""
    w = call.w
    half, others = halves(call, count)
    assert x.dtype is not None
    rest = w("Gather", x, others, axis=axis)
    signs = w.constant([1, -1], x.dtype)
    first = w("Slice", x, w.constant([0]), half, w.constant([axis]))
    return w("Concat", first, w("Mul", rest, signs), axis=axis)


def halves(call: Call, count: int | ir.Value) -> tuple[ir.Value, ir.Value]:
    """How many points a half has, and which of them the other half mirrors."""
    w = call.w
    if isinstance(count, int):
        half = count // 2 + 1
        return w.constant([half]), w.constant(count - np.arange(half, count))
    one = w.constant(1)
    here = w("Add", w("Div", count, w.constant(2)), one)
    there = w("Sub", count, w("Range", here, count, one))
    return w("Unsqueeze", here, w.constant([0])), there


def transformed(call: Call, x: ir.Value, axis: int, **said: Any) -> ir.Value:
    return call.w("DFT", x, None, call.w.constant(axis), **said)


def scaled(call: Call, x: ir.Value, shape: Sequence[Any], inverse: int = 0) -> ir.Value:
    """ONNX divides by the points on the way back, torch as it is said."""
    points = product(call, [shape[axis] for axis in call.axes("dim")])
    return multiplied(call, x, points, POWERS[call["normalization"]] + inverse)


def product(call: Call, dims: Sequence[Any]) -> int | ir.Value:
    """How many points axes have together."""
    found = [call.size(n) for n in dims]
    known = math.prod(n for n in found if isinstance(n, int))
    unknown = [n for n in found if not isinstance(n, int)]
    if not unknown:
        return known
    return reduce(partial(call.w, "Mul"), unknown, call.w.constant(known))


def multiplied(
    call: Call, x: ir.Value, points: int | ir.Value, power: float
) -> ir.Value:
    w = call.w
    if power == 0:
        return x
    assert x.dtype is not None
    if isinstance(points, int):
        return w("Mul", x, w.constant(max(points, 1) ** power, x.dtype))
    exact = ir.DataType.DOUBLE
    factor = w("Pow", w.cast(points, exact), w.constant(power, exact))
    return w("Mul", x, w.cast(factor, x.dtype))


def together(call: Call, pair: Any) -> ir.Value:
    """The parts side by side on an axis behind all others."""
    at = call.w.constant([-1])
    each = [call.w("Unsqueeze", x, at) for x in (pair.re, pair.im)]
    return call.w("Concat", *each, axis=-1)


def apart(call: Call, x: ir.Value) -> Pair:
    parts = [call.w("Gather", x, call.w.constant(i), axis=-1) for i in (0, 1)]
    return Pair(*parts)


OPERATORS = {
    "aten::_fft_r2c": of_real, "aten::_fft_c2c": of_complex,
    "aten::_fft_c2r": to_real,
}  # fmt: skip
