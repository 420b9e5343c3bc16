"""Averages of windows of integers, which ONNX's AveragePool has of floats alone.

Sums of what each tap of the windows reads, and how many of these are elements; the
quotient leaves out what is behind the point, as torch's does.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce
from itertools import product

import onnx_ir as ir

from nanoloom.frontend.torch.call import Call
from nanoloom.frontend.torch.open_groups import window

Numbers = Sequence[int]


def averaged_integers(call: Call, x: ir.Value, spatial: int) -> ir.Value:
    """x has a batch."""
    w, kernel = call.w, call.numbers("kernel_size", spatial)
    strides = call.numbers("stride", spatial) if call["stride"] else kernel
    pads = call.numbers("padding", spatial)
    more = [s - 1 if call["ceil_mode"] else 0 for s in strides]  # counted by nobody

    def summed(x: ir.Value, around: Numbers, outside: Numbers) -> ir.Value:
        """around: zeros on both sides.  outside: more of them behind."""
        behind = [p + n for p, n in zip(around, outside, strict=True)]
        x = w("Pad", x, w.constant([0, 0, *around, 0, 0, *behind]))
        taps, sizes = product(*map(range, kernel)), call.shape[-spatial:]
        seen = [window(call, x, tap, strides, sizes) for tap in taps]
        return reduce(partial(w, "Add"), seen)

    total = summed(x, pads, more)
    if own := call["divisor_override"]:
        return w("Div", total, w.constant(own, call.dtype))
    image = [1, 1, *call.sizes.all(call.fake("self").shape[-spatial:])]
    ones = w("Expand", w.constant(1, call.dtype), w.ints(image))
    if call["count_include_pad"] is False:
        return w("Div", total, summed(ones, pads, more))
    edges = w.constant([0, 0, *pads] * 2)
    ones = w("Pad", ones, edges, w.constant(1, call.dtype))
    return w("Div", total, summed(ones, [0] * spatial, more))
