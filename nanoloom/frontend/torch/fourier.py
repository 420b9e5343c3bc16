"""Fourier transforms along axes, one after the other, as ONNX's DFT."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx_ir as ir

from nanoloom.frontend.torch.call import Call
from nanoloom.frontend.torch.pair import Pair

NONE, ROOT, COUNT = range(3)  # what results are divided by: of the number of points


def of_real(call: Call) -> Pair:
    """_fft_r2c: of the last axis said, where half of the result may be left out."""
    *others, last = call.axes("dim")
    x = call.w("Unsqueeze", call.value("self"), call.w.constant([-1]))
    half = int(bool(call["onesided"]))
    made = transformed(call, x, last, onesided=half)
    for axis in others:
        made = transformed(call, made, axis)
    return apart(call, scaled(call, made, sizes(call, call.fake("self").shape)))


def of_complex(call: Call) -> Pair:
    """_fft_c2c, in both directions."""
    made = together(call, call.values[call.args["self"]])
    inverse = int(not call["forward"])
    for axis in call.axes("dim"):
        made = transformed(call, made, axis, inverse=inverse)
    return apart(call, scaled(call, made, sizes(call, call.out.shape), inverse))


def to_real(call: Call) -> ir.Value:
    """_fft_c2r: half of a spectrum whose other half mirrors it."""
    *others, last = call.axes("dim")
    (count,) = call.numbers("last_dim_size")
    made = together(call, call.values[call.args["self"]])
    for axis in others:
        made = transformed(call, made, axis, inverse=1)
    w, half = call.w, count // 2 + 1
    mirrored = count - np.arange(half, count)
    rest = w("Gather", made, w.constant(mirrored), axis=last)
    signs = w.constant([1, -1], call.dtype)
    first = w("Slice", made, w.constant([0]), w.constant([half]), w.constant([last]))
    whole = w("Concat", first, w("Mul", rest, signs), axis=last)
    made = transformed(call, whole, last, inverse=1)
    points = sizes(call, call.out.shape)
    return apart(call, scaled(call, made, points, inverse=1)).re


def transformed(call: Call, x: ir.Value, axis: int, **said: Any) -> ir.Value:
    return call.w("DFT", x, None, call.w.constant(axis), **said)


def sizes(call: Call, shape: Any) -> int:
    """Points of the axes; ONNX divides by them on the way back, torch as it is said."""
    found = [shape[axis] for axis in call.axes("dim")]
    if not all(isinstance(n, int) for n in found):
        raise call.refuse("transforms an axis whose size is not known")
    return math.prod(found)


def scaled(call: Call, x: ir.Value, points: int, inverse: int = 0) -> ir.Value:
    mode = call["normalization"]
    wanted = {NONE: 1.0, ROOT: points**-0.5, COUNT: 1 / max(points, 1)}[mode]
    factor = wanted * (points if inverse else 1)
    assert x.dtype is not None
    return call.w("Mul", x, call.w.constant(factor, x.dtype)) if factor != 1 else x


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
