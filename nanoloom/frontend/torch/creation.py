"""Tensors made of numbers and sizes alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import torch

from nanoloom.frontend.torch.call import Call
from nanoloom.frontend.torch.element_types import numpy_view

T = ir.DataType


def filled(number: int) -> object:
    def made(call: Call) -> ir.Value:
        return expanded(call, call.w.constant(number, call.dtype))

    return made


def full(call: Call) -> ir.Value:
    return expanded(call, call.value("fill_value", call.dtype))


def expanded(call: Call, value: ir.Value) -> ir.Value:
    return call.w("Expand", value, call.w.ints(call.shape)) if call.rank else value


def arange(call: Call) -> ir.Value:
    """Of integers as int64; of floats by their number, which torch has rounded.

    Integers between floats are as many as the floats say, and begin at the integer.
    """
    w, start, step = call.w, call.args.get("start", 0), call.args.get("step", 1)
    if call.dtype.is_integer() and is_float(start, call["end"], step):
        (count,) = call.shape
        if not isinstance(count, int):
            raise call.refuse("has ends that are no integers, and an open size")
        return w.constant(int(start) + int(step) * np.arange(count), call.dtype)
    if call.dtype.is_integer():
        given = [call.of(x, T.INT64) for x in (start, call["end"], step)]
        return w.cast(w("Range", *given), call.dtype)
    (count,) = call.shape
    each = w("Range", *[w.constant(0), call.sizes.operand(count), w.constant(1)])
    wide = T.DOUBLE if call.dtype == T.DOUBLE else T.FLOAT
    steps = w("Mul", w.cast(each, wide), call.of(step, wide))
    return w.cast(w("Add", steps, call.of(start, wide)), call.dtype)


def is_float(*given: object) -> bool:
    return any(isinstance(x, float) for x in given)


def scalar_tensor(call: Call) -> ir.Value:
    return call.value("s", call.dtype)


def linspace(call: Call) -> ir.Value:
    """As torch itself computes it: steps of numbers alone."""
    given = call["start"], call["end"], call["steps"]
    if not all(isinstance(x, int | float) for x in given):
        raise call.refuse("has numbers that are computed")
    made = torch.linspace(*given, dtype=call.out.dtype)
    return call.w.constant(numpy_view(made, "constant"), call.dtype)


def between(
    start: Any, end: Any, steps: int, *, dtype: torch.dtype | None = None, **rest: Any
) -> torch.Tensor:
    """Steps between numbers of data.  Those of integers are between integers, which
    torch's own rule leaves out."""
    del rest  # where it would lie
    made: torch.dtype = dtype or torch.get_default_dtype()
    if not (made.is_floating_point or made.is_complex):
        start, end = (
            x.to(made) if isinstance(x, torch.Tensor) else int(x) for x in (start, end)
        )
    return torch._refs.linspace(start, end, steps, dtype=made, device="cpu")


def eye(call: Call) -> ir.Value:
    w, shape = call.w, call.w.ints(call.shape)
    zeros = w("Expand", w.constant(0, T.FLOAT), shape)
    return w.cast(w("EyeLike", zeros, dtype=int(T.FLOAT)), call.dtype)


OPERATORS = {
    **dict.fromkeys(("zeros", "zeros_like", "new_zeros", "empty", "empty_like",
                     "new_empty", "zero", "empty_permuted", "empty_strided",
                     "new_empty_strided"), filled(0)),
    **dict.fromkeys(("ones", "ones_like", "new_ones"), filled(1)),
    **dict.fromkeys(("full", "full_like", "new_full"), full),
    "arange": arange, "scalar_tensor": scalar_tensor, "linspace": linspace, "eye": eye,
}  # fmt: skip
RULES: dict[Any, Any] = {
    getattr(torch.ops.aten.linspace, kind): between
    for kind in ("Tensor_Tensor", "Tensor_Scalar", "Scalar_Tensor")
}
