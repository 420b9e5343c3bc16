"""Convolutions that ONNX's Conv has not, as products: of integers, and with as many
groups as a size says, where each image has filters of its own.

    x[1, b * c, y, x], w[b * f, c, 3, 3], groups = b   (StyleGAN's modulated layers)
      ->  w[b, f, 9 * c] @ windows[1, b, 9 * c, pixels]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod
from typing import Any

import onnx_ir as ir

from nanoloom.frontend.torch import products
from nanoloom.frontend.torch.call import Call, fake_of

Numbers = Sequence[int]
Size = int | ir.Value


def by_windows(
    call: Call, x: ir.Value, said: Mapping[str, Numbers], *, turned: bool
) -> ir.Value:
    """said: strides, dilations, pads, and output_padding of a transposed one, which
    goes over its numbers with zeros between them, its filters the other way round."""
    w, kernel = call.w, [int(k) for k in call.fake("weight").shape[2:]]
    count, strides, pads = len(kernel), said["strides"], said["pads"]
    spaced = list(zip(kernel, said["dilations"], strict=True))
    images = call.size(call.fake("input").shape[0])
    images = 1 if call.input_rank("input") == count + 1 else images
    if turned:
        x = spread(call, x, images, strides)
        fronts = [d * (k - 1) - p for (k, d), p in zip(spaced, pads, strict=False)]
        more = zip(fronts, said["output_padding"], strides, strict=True)
        pads = [*fronts, *(front + extra - s + 1 for front, extra, s in more)]
        strides = [1] * count
    x = w("Pad", x, w.constant([0, 0, *pads[:count], 0, 0, *pads[count:]]))
    taps = list(product(*([d * n for n in range(k)] for k, d in spaced)))
    groups, sizes = call.size(call["groups"]), call.shape[-count:]
    channels = channels_of(call, turned=turned)
    seen = [window(call, x, tap, strides, sizes) for tap in taps]
    parts = [w.reshape(part, [images, groups, channels, -1]) for part in seen]
    rows = w("Concat", *parts, axis=2)
    each = filters(call, groups, channels, prod(kernel), turned=turned)
    made = w.reshape(products.product(call, each, rows), [images, -1, *sizes])
    bias = call.optional("bias")
    return made if bias is None else w("Add", made, w.reshape(bias, [-1] + [1] * count))


def channels_of(call: Call, *, turned: bool) -> Size:
    """How many channels of the input a group has."""
    outer, inner = call.fake("weight").shape[:2]
    groups: Any = fake_of(call["groups"])
    return call.size(outer // groups if turned else inner)


def filters(
    call: Call, groups: Size, channels: Size, taps: int, *, turned: bool
) -> ir.Value:
    """[groups, features, taps * channels]"""
    w, weight = call.w, call.value("weight")
    if turned:
        weight = w.reshape(weight, [groups, channels, -1, taps])
        weight = w("Gather", weight, w.constant([*reversed(range(taps))]), axis=3)
        weight = w("Transpose", weight, perm=[0, 2, 3, 1])
    else:
        weight = w.reshape(weight, [groups, -1, channels, taps])
        weight = w("Transpose", weight, perm=[0, 1, 3, 2])
    return w.reshape(weight, [groups, -1, times(call, channels, taps)])


def window(
    call: Call, x: ir.Value, tap: Numbers, strides: Numbers, sizes: Sequence[Size]
) -> ir.Value:
    """What one tap reads for each place of the result."""
    w, ends = call.w, list[Size]()
    for begin, step, size in zip(tap, strides, sizes, strict=True):
        end = times(call, size, step)
        behind = begin - step + 1
        ends.append(
            end + behind
            if isinstance(end, int)
            else w("Add", end, w.constant(behind))
        )  # fmt: skip
    axes = w.constant([*range(2, 2 + len(tap))])
    return w("Slice", x, w.constant([*tap]), w.ints(ends), axes, w.constant([*strides]))


def spread(call: Call, x: ir.Value, images: Size, strides: Numbers) -> ir.Value:
    """Zeros behind each number: as many as a step passes over."""
    w, axes = call.w, [3 + 2 * n for n in range(len(strides))]
    zeros = [step - 1 for step in strides]
    x = w("Unsqueeze", x, w.constant(axes))
    x = w("Pad", x, w.constant([0] * len(axes) + zeros), None, w.constant(axes))
    here = map(call.size, call.fake("input").shape[-len(strides) :])
    sizes = [times(call, n, step) for n, step in zip(here, strides, strict=True)]
    return w.reshape(x, [images, -1, *sizes])


def times(call: Call, size: Size, factor: int) -> Size:
    if isinstance(size, int):
        return size * factor
    return call.w("Mul", size, call.w.constant(factor))
