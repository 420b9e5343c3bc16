"""Tensors made of numbers and sizes alone."""

from __future__ import annotations

import onnx_ir as ir

from nanoloom.frontend.torch.call import Call

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
    """Of integers as int64, of floats in the type of the result."""
    exact = call.dtype.is_integer()
    dtype = T.INT64 if exact else call.dtype
    if dtype in (T.FLOAT16, T.BFLOAT16):
        dtype = T.FLOAT
    start, step = call.args.get("start", 0), call.args.get("step", 1)
    given = [call.of(x, dtype) for x in (start, call["end"], step)]
    return call.w.cast(call.w("Range", *given), call.dtype)


def scalar_tensor(call: Call) -> ir.Value:
    return call.value("s", call.dtype)


def eye(call: Call) -> ir.Value:
    w, shape = call.w, call.w.ints(call.shape)
    zeros = w("Expand", w.constant(0, T.FLOAT), shape)
    return w.typed(call.dtype, "EyeLike", zeros, dtype=int(call.dtype))


OPERATORS = {
    **dict.fromkeys(("zeros", "zeros_like", "new_zeros", "empty", "empty_like",
                     "new_empty", "zero", "empty_permuted", "empty_strided",
                     "new_empty_strided"), filled(0)),
    **dict.fromkeys(("ones", "ones_like", "new_ones"), filled(1)),
    **dict.fromkeys(("full", "full_like", "new_full"), full),
    "arange": arange, "scalar_tensor": scalar_tensor, "eye": eye,
}  # fmt: skip
