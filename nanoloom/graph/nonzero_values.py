"""Values that are never 0: sums of signs with a bias that no sum takes away.

A product of signs is a whole number, of which there are few: times the filter's factor
and with its offset each of them is computed here, as the program will.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from nanoloom.graph.quantization import known_array
from nanoloom.graph.sign_values import MOVES, bounds_of

DOMAIN = "nanoloom.binary"
PRODUCTS = ("BitConvolution", "BitMatMul")
KEPT = ("Identity", "MaxPool", *MOVES)  # make no new numbers
BYTE = 8
MOST = 1 << 24  # numbers that are looked at
LEAST = 1e-37  # of a number that no rounding makes 0


def is_nonzero(value: ir.Value | None) -> bool:
    """Whether a value is known to be neither 0 nor NaN."""
    node = None if value is None else value.producer()
    if node is None:
        return False
    if node.domain == DOMAIN and node.op_type in PRODUCTS:
        return sums_are_nonzero(node)
    if node.domain not in ("", "ai.onnx"):
        return False
    if node.op_type == "Clip":
        bounds = bounds_of(node)
        around = bounds is not None and bool(bounds[0] < 0 < bounds[1])
        return around and is_nonzero(node.inputs[0])
    return node.op_type in KEPT and is_nonzero(node.inputs[0])


def sums_are_nonzero(node: ir.Node) -> bool:
    """Whether no sum of signs, scaled and moved, can be 0.

    In one rounding or in two: both may be what the program does.
    """
    bits, _, factor, *rest = (known_array(value) for value in node.inputs[1:])
    bias = node.inputs[4] if len(node.inputs) > 4 else None
    if bits is None or factor is None or bias is None or rest[0] is None:
        return False
    columns = factor.size
    deepest = BYTE * bits.size // columns
    if 2 * deepest * columns > MOST:
        return False
    sums = np.arange(-deepest, deepest + 1, dtype=np.float32)[:, None]
    with np.errstate(all="ignore"):
        twice = sums * factor.reshape(-1) + rest[0].reshape(-1)
        once = sums.astype(np.float64) * factor.reshape(-1) + rest[0].reshape(-1)
    found = (abs(x) for x in (twice, once))
    return all(bool(((x > LEAST) & np.isfinite(x)).all()) for x in found)
