"""Largest elements of windows of integers, which ONNX's MaxPool has of bytes alone.

Each axis is read at the places of its windows, which are known; the largest of those
elements are the result, and where the first of them is, if that is asked for.
"""

from __future__ import annotations

from math import prod

import numpy as np
import onnx_ir as ir

from nanoloom.frontend.torch.call import Call

T = ir.DataType
BY_MAX_POOL = (T.FLOAT, T.DOUBLE, T.FLOAT16, T.BFLOAT16, T.INT8, T.UINT8)


def pooled_integers(call: Call, x: ir.Value, spatial: int) -> tuple[ir.Value, ir.Value]:
    """The values and their places in an image of one channel; x has a batch."""
    w = call.w
    sizes = call.fake("self").shape[-spatial:]
    out = call.out[0] if isinstance(call.out, tuple | list) else call.out
    if not all(isinstance(n, int) for n in (*sizes, *out.shape)):
        raise call.refuse("pools integers of an open size")
    wanted = [int(n) for n in out.shape[-spatial:]]
    kernel = call.numbers("kernel_size", spatial)
    strides = call.numbers("stride", spatial) if call["stride"] else kernel
    pads, apart = call.numbers("padding", spatial), call.numbers("dilation", spatial)
    places: list[np.ndarray] = []
    for axis in range(spatial):
        at = np.arange(wanted[axis])[:, None] * strides[axis] - pads[axis]
        at = at + np.arange(kernel[axis]) * apart[axis]
        # Outside is the first element inside again, which is in the window anyway.
        inside = (at >= 0) & (at < int(sizes[axis]))
        first = np.take_along_axis(at, inside.argmax(1)[:, None], 1)
        places.append(np.where(inside, at, first))
        x = w("Gather", x, w.constant(places[-1]), axis=2 + 2 * axis)
    # [batch, channels, out, kernel, out, kernel, ...] to [..., out..., kernels]
    rank = 2 + 2 * spatial
    order = [0, 1, *range(2, rank, 2), *range(3, rank, 2)]
    x = w("Transpose", x, perm=order)
    batch = call.sizes.all(out.shape)[:-spatial]
    lead = batch if len(batch) == 2 else [1, *batch]
    rows = w.reshape(x, [*lead, *wanted, prod(kernel)])
    best = w.typed(T.INT64, "ArgMax", rows, axis=-1, keepdims=1)
    values = w("GatherElements", rows, best, axis=-1)
    shape = w.typed(T.INT64, "Shape", rows)
    flat = w("Expand", w.constant(flat_places(places, sizes)), shape)
    where = w("GatherElements", flat, best, axis=-1)
    last = w.constant([-1])
    return w("Squeeze", values, last), w("Squeeze", where, last)


def flat_places(places: list[np.ndarray], sizes: tuple[int, ...]) -> np.ndarray:
    """[out..., kernels]: which element of an image each element of a window is."""
    spatial = len(places)
    total = np.zeros([1] * (2 * spatial), np.int64)
    for axis, at in enumerate(places):
        shape = [1] * (2 * spatial)
        shape[axis], shape[spatial + axis] = at.shape
        total = total * int(sizes[axis]) + at.reshape(shape)
    return total.reshape(*[len(at) for at in places], -1)
