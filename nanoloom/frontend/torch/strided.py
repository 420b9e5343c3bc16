"""Views by strides: as_strided reads the memory in which its argument lies.

Values here are no memory.  What torch knows of the argument's strides says which of its
elements each place is.
"""

from __future__ import annotations

from itertools import permutations
from typing import Any

import onnx_ir as ir
import torch

from nanoloom.frontend.torch.call import Call
from nanoloom.frontend.torch.memory_order import is_dense

aten: Any = torch.ops.aten


def as_strided(call: Call) -> ir.Value:
    w, x, fake = call.w, call.value("self"), call.fake("self")
    axes = range(fake.dim())
    order = next((p for p in permutations(axes) if is_dense(fake, p)), None)
    if order is None:
        raise call.refuse("reads by strides what does not lie densely")
    if order != tuple(axes):
        x = w("Transpose", x, perm=order)
    return w("Gather", w.reshape(x, [-1]), elements(call, fake), axis=0)


def elements(call: Call, fake: torch.Tensor) -> ir.Value:
    """The number of each: start + i * stride + j * stride + ..."""
    w, wanted = call.w, call["storage_offset"]
    own = fake.storage_offset()
    first, last = (operand(call, own if x is None else x) for x in (wanted, own))
    pairs = list(zip(call["size"], call["stride"], strict=True))
    found = w("Sub", first, last)
    for axis, (size, stride) in enumerate(pairs):
        count, step = operand(call, size), operand(call, stride)
        each = w("Mul", w("Range", w.constant(0), count, w.constant(1)), step)
        column = w.reshape(each, [-1, *[1] * (len(pairs) - 1 - axis)])
        found = w("Add", found, column)
    return found


def operand(call: Call, size: object) -> ir.Value:
    return call.sizes.operand(call.size(size))


def trace(x: torch.Tensor) -> torch.Tensor:
    """torch's own rule asks open sizes for an offset."""
    return x.diagonal().sum()


OPERATORS = {"as_strided": as_strided}
RULES: dict[Any, Any] = {aten.trace.default: trace}
