"""Operators that ONNX has by now, under the names that ONNX Runtime had before."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir as ir

from nanoloom.frontend.microsoft.inferred_types import constant_tensor
from nanoloom.frontend.microsoft.products import WINDOW, same_size
from nanoloom.frontend.microsoft.replacement import Refused, Replacement

GRID_SAMPLE = 16  # the opset whose modes have the same names
UNIQUE = 11


def pad(b: Replacement) -> ir.Value:
    """Pads may lie in a row of their own, and the number in a list."""
    pads, number = b.op("Reshape", b.input(1), b.numbers(-1)), b.optional(2)
    if number is not None:
        number = scalar(b, number)
    return b.op("Pad", b.input(0), pads, number, mode=b.string("mode", "constant"))


def scalar(b: Replacement, x: ir.Value) -> ir.Value:
    return b.op("Reshape", x, b.constant(np.zeros(0, np.int64)))


def counting(b: Replacement) -> ir.Value:
    start, limit, step = b.input(0), b.input(1), b.optional(2)
    one = b.scalar(1, start) if step is None else scalar(b, step)
    return b.op("Range", scalar(b, start), scalar(b, limit), one)


def expand_dims(b: Replacement) -> ir.Value:
    axis = b.op("Cast", b.input(1), to=int(ir.DataType.INT64))
    return b.op("Unsqueeze", b.input(0), b.op("Reshape", axis, b.numbers(-1)))


def trilu(b: Replacement) -> ir.Value:
    return b.op("Trilu", b.input(0), b.optional(1), upper=b.int("upper", 1))


def gather_nd(b: Replacement) -> ir.Value:
    indices = b.op("Cast", b.input(1), to=int(ir.DataType.INT64))
    return b.op("GatherND", b.input(0), indices)


def grid_sample(b: Replacement) -> ir.Value:
    return b.op(
        "GridSample", b.input(0), b.input(1), version=GRID_SAMPLE,
        mode=b.string("mode", "bilinear"), align_corners=b.int("align_corners", 0),
        padding_mode=b.string("padding_mode", "zeros"),
    )  # fmt: skip


def unique(b: Replacement) -> Sequence[ir.Value | None]:
    """In the order in which the numbers come."""
    made = b.ops("Unique", b.input(0), outputs=4, sorted=0, version=UNIQUE)
    return [made[0], made[2], made[3]]


def conv_transpose(b: Replacement) -> ir.Value:
    """Pads are an input, which has to be a constant."""
    given = {name: b.ints(name) for name in (*WINDOW, "output_padding")}
    pads = b.optional(2)
    if pads is not None:
        tensor = constant_tensor(pads)
        if tensor is None:
            raise Refused(
                f"its pads {pads.name} are computed", "export it with constant pads"
            )
        given["pads"] = [int(x) for x in tensor.numpy().reshape(-1)]
    return b.op(
        "ConvTranspose", b.input(0), b.input(1), b.optional(3),
        group=b.int("group", 1), **same_size(b, given),
    )  # fmt: skip


def distances(b: Replacement) -> ir.Value:
    """Of each row of one matrix to each of another one."""
    metric = b.string("metric", "sqeuclidean")
    if metric not in ("euclidean", "sqeuclidean"):
        raise Refused(f"its attribute metric = {metric} is not supported")
    rows = b.op("Unsqueeze", b.input(0), b.numbers(1))
    others = b.op("Unsqueeze", b.input(1), b.numbers(0))
    apart = b.op("Sub", rows, others)
    made = b.op("ReduceSumSquare", apart, b.numbers(2), keepdims=0)
    return made if metric == "sqeuclidean" else b.op("Sqrt", made)


def echo(b: Replacement) -> ir.Value:
    return b.op("Identity", b.input(0))


OPERATORS: dict[str, Callable[[Replacement], ir.Value | Sequence[ir.Value | None]]] = {
    "CDist": distances,
    "ConvTransposeWithDynamicPads": conv_transpose,
    "ExpandDims": expand_dims,
    "GatherND": gather_nd,
    "GridSample": grid_sample,
    "Pad": pad,
    "Range": counting,
    "SampleOp": echo,
    "Trilu": trilu,
    "Unique": unique,
}
