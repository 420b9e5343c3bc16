"""Parts of images and of rows, cut out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from nanoloom.frontend.microsoft.replacement import Refused, Replacement

INT64 = ir.DataType.INT64


class Places(NamedTuple):
    """Where samples lie along an axis: [boxes, count] each.

    low, high: the elements around them.  share: of the higher one.  outside: of it.
    """

    low: ir.Value
    high: ir.Value
    share: ir.Value
    outside: ir.Value


def crop_and_resize(b: Replacement) -> ir.Value:
    """Boxes of images [N, C, H, W], resized to one size with their corners kept."""
    mode = b.string("mode", "bilinear")
    if mode not in ("bilinear", "nearest"):
        raise Refused(f"its attribute mode = {mode} is not supported")
    x, boxes = b.input(0), b.input(1)
    is_nearest = mode == "nearest"
    down, across = (places(b, x, boxes, axis, is_nearest=is_nearest) for axis in (0, 1))
    images = b.op("Transpose", x, perm=[0, 2, 3, 1])
    low, high = (between(b, images, at, across, is_nearest) for at in down[:2])
    made = low if is_nearest else mixed(b, low, high, spread(b, down.share, 2, 3))
    outside = b.op("Or", spread(b, down.outside, 2, 3), spread(b, across.outside, 1, 3))
    value = b.scalar(b.float("extrapolation_value", 0.0), x)
    return b.op("Transpose", b.op("Where", outside, value, made), perm=[0, 3, 1, 2])


def places(
    b: Replacement, x: ir.Value, boxes: ir.Value, axis: int, *, is_nearest: bool
) -> Places:
    """axis: 0 for rows, 1 for columns."""
    extent = b.op("Shape", x, start=2 + axis, end=3 + axis)
    most = b.op("CastLike", b.op("Sub", extent, b.numbers(1)), boxes)
    first, last = (
        b.op("Gather", boxes, b.numbers(at), axis=1) for at in (axis, axis + 2)
    )
    size = b.op("Cast", b.op("Gather", b.input(3), b.numbers(axis)), to=int(INT64))
    zero, one = (b.constant(np.array(n, np.int64)) for n in (0, 1))
    counted = b.op("Range", zero, b.op("Squeeze", size, b.numbers(0)), one)
    steps = b.op(
        "CastLike", b.op("Max", b.op("Sub", size, b.numbers(1)), b.numbers(1)), boxes
    )
    step = b.op("Div", b.op("Mul", b.op("Sub", last, first), most), steps)
    many = b.op(
        "Add",
        b.op("Mul", first, most),
        b.op("Mul", b.op("CastLike", counted, boxes), step),
    )
    middle = b.op(
        "Mul", b.op("Mul", b.op("Add", first, last), b.scalar(0.5, boxes)), most
    )
    at = b.op("Where", b.op("Equal", size, b.numbers(1)), middle, many)
    outside = b.op(
        "Or", b.op("Less", at, b.scalar(0, boxes)), b.op("Greater", at, most)
    )
    inside = b.op("Where", outside, b.scalar(0, boxes), at)
    low = b.op("Floor", inside)
    share = b.op("Sub", inside, low)
    high = b.op("Ceil", inside)
    if is_nearest:
        low = b.op(
            "Where", b.op("GreaterOrEqual", share, b.scalar(0.5, boxes)), high, low
        )
    low, high = (b.op("Cast", v, to=int(INT64)) for v in (low, high))
    return Places(low, high, share, outside)


def spread(b: Replacement, x: ir.Value, *axes: int) -> ir.Value:
    return b.op("Unsqueeze", x, b.numbers(*axes))


def between(
    b: Replacement, images: ir.Value, row: ir.Value, across: Places, is_nearest: bool
) -> ir.Value:
    """Elements of rows: [boxes, rows, columns, C], between those of two columns."""
    image = b.op("Cast", spread(b, b.input(2), 1, 2), to=int(INT64))
    row = spread(b, row, 2)
    columns = [spread(b, at, 1) for at in across[:2]]
    shape = b.op("Shape", b.op("Add", b.op("Add", image, row), columns[0]))

    def taken(column: ir.Value) -> ir.Value:
        parts = [spread(b, b.op("Expand", v, shape), 3) for v in (image, row, column)]
        return b.op("GatherND", images, b.op("Concat", *parts, axis=3))

    if is_nearest:
        return taken(columns[0])
    low, high = (taken(column) for column in columns)
    return mixed(b, low, high, spread(b, across.share, 1, 3))


def mixed(b: Replacement, low: ir.Value, high: ir.Value, share: ir.Value) -> ir.Value:
    return b.op("Add", low, b.op("Mul", b.op("Sub", high, low), share))


def unfold(b: Replacement) -> ir.Value:
    """Windows along one axis: where each begins stays there, its elements come last."""
    x, size, step = b.input(0), b.positive("size"), b.positive("step", 1)
    rank = b.rank(x)
    axis = b.int("dim", -1) % max(rank, 1)
    extent = b.op("Squeeze", b.op("Shape", x, start=axis, end=axis + 1), b.numbers(0))
    zero, by = (b.constant(np.array(n, np.int64)) for n in (0, step))
    starts = b.op("Sub", extent, b.constant(np.array(size - 1, np.int64)))
    firsts = b.op("Unsqueeze", b.op("Range", zero, starts, by), b.numbers(1))
    made = b.op("Gather", x, b.op("Add", firsts, b.numbers(*range(size))), axis=axis)
    order = [at for at in range(rank + 1) if at != axis + 1]
    return b.op("Transpose", made, perm=[*order, axis + 1])


OPERATORS = {"CropAndResize": crop_and_resize, "UnfoldTensor": unfold}
