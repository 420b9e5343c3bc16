"""Fourier transforms as models call them (rfft, irfft2, fftn), of axes of any size.

What torch makes of them asks how large each axis is.  Here axes are cut or filled up
with zeros by sizes that may be open, and transformed one after the other.
"""

from __future__ import annotations

from typing import Any

import onnx_ir as ir
import torch

from nanoloom.frontend.torch import fourier
from nanoloom.frontend.torch.call import Call, fake_of
from nanoloom.frontend.torch.element_types import element_type
from nanoloom.frontend.torch.pair import Pair
from nanoloom.frontend.torch.sizes import expression

# To which power of the number of points results are multiplied, of forward ones.
NORMS = {None: 0.0, "backward": 0.0, "ortho": -0.5, "forward": -1.0}
NAMES = ("fft", "rfft", "fft2", "fftn", "rfft2", "rfftn")
REAL = {torch.complex64: torch.float32, torch.complex128: torch.float64}


def forward(call: Call) -> Pair:
    shape, wanted = call.fake("self").shape, dict(asked(call))
    *others, last = wanted
    points = {axis: wanted[axis] or shape[axis] for axis in wanted}
    x = given(call)
    for axis, count in points.items():
        x = fitted(call, x, axis, shape[axis], count)
    half = int(call.node.target._schema.name.startswith("aten::fft_r"))
    x = fourier.transformed(call, x, last, onesided=half)
    for axis in others:
        x = fourier.transformed(call, x, axis)
    power = NORMS[call["norm"]]
    total = fourier.product(call, list(points.values()))
    return fourier.apart(call, fourier.multiplied(call, x, total, power))


def backward(call: Call) -> Pair | ir.Value:
    """ONNX divides by the points on the way back, torch as it is said."""
    shape, out = call.fake("self").shape, call.out.shape
    *others, last = (axis for axis, _ in asked(call))
    x, half = given(call), not call.out.is_complex()
    for axis in others:
        x = fitted(call, x, axis, shape[axis], out[axis])
        x = fourier.transformed(call, x, axis, inverse=1)
    have = out[last] // 2 + 1 if half else out[last]
    x = fitted(call, x, last, shape[last], have)
    if half:
        x = fourier.mirrored(call, x, last, call.size(out[last]))
    x = fourier.transformed(call, x, last, inverse=1)
    total = fourier.product(call, [out[axis] for axis in (*others, last)])
    made = fourier.multiplied(call, x, total, -NORMS[call["norm"]])
    parts = fourier.apart(call, made)
    return parts.re if half else parts


def asked(call: Call) -> list[tuple[int, Any]]:
    """The axes, and how many points each has; None for as many as there are."""
    rank = call.fake("self").dim()
    if "n" in call.args:
        return [(call["dim"] % rank, fake_of(call["n"]))]
    counts, dims = call["s"], call["dim"]
    if dims is None:
        dims = range(rank if counts is None else len(counts))
        dims = [axis - len(dims) for axis in dims]
    counts = [-1] * len(dims) if counts is None else map(fake_of, counts)
    return [
        (axis % rank, None if str(n) == "-1" else n)
        for axis, n in zip(dims, counts, strict=True)
    ]


def given(call: Call) -> ir.Value:
    """Real and imaginary parts along a last axis, real ones alone where that is all."""
    pair = call.values[call.args["self"]]
    if isinstance(pair, Pair):
        return fourier.together(call, pair)
    kind = REAL.get(call.out.dtype, call.out.dtype)
    x = call.value("self", element_type(kind, "an input"))
    return call.w("Unsqueeze", x, call.w.constant([-1]))


def fitted(call: Call, x: ir.Value, axis: int, have: Any, want: Any) -> ir.Value:
    """The axis with so many points: the first ones, or zeros behind all."""
    if text(have) == text(want):
        return x
    known = isinstance(have, int) and isinstance(want, int)
    w, at = call.w, call.w.constant([axis])
    new, old = (call.w.scalar(call.w.ints([call.size(n)])) for n in (want, have))
    if not known or want < have:
        x = w("Slice", x, w.constant([0]), w.ints([call.size(want)]), at)
    if known and want < have:
        return x
    missing = w("Max", w("Sub", new, old), w.constant(0))
    return w("Pad", x, w.ints([0, missing]), None, at)


def text(size: Any) -> str:
    """Equal sizes have equal texts."""
    return str(size if isinstance(size, int) else expression(size))


OPERATORS = {
    **{f"aten::fft_{name}": forward for name in NAMES},
    **{f"aten::fft_i{name}": backward for name in NAMES},
}
