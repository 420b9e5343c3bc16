"""Quantized numbers as torch's PT2E writes them: QuantizeLinear and DequantizeLinear.

    quantize(x) = clamp(round(x * (1 / scale)) + zero, least, most)
    dequantize(q) = (q - zero) * scale

ONNX divides by the scale, so that a number halfway between two integers, up to the
rounding of its product, may become the other one.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from nanoloom.frontend.torch.call import Call
from nanoloom.frontend.torch.element_types import element_type

T = ir.DataType
BYTES = T.INT8, T.UINT8, T.INT16, T.UINT16
LEAST = {T.INT8: -128, T.UINT8: 0, T.INT16: -(2**15), T.UINT16: 0}


def scale_and_zero(call: Call, dtype: ir.DataType) -> tuple[ir.Value, ir.Value]:
    """Both with one number, or one for each channel or group."""
    if "scale" in call.args:
        scale, zero = call.value("scale", T.FLOAT), call.value("zero_point", dtype)
        return call.w.scalar(scale), call.w.scalar(zero)
    scale = call.value("scales", T.FLOAT)
    if call.has("zero_points"):
        return scale, call.value("zero_points", dtype)
    return scale, call.w.typed(
        dtype,
        "Expand",
        call.w.constant(0, dtype),
        call.w.typed(T.INT64, "Shape", scale),
    )


def axis_of(call: Call) -> dict[str, int]:
    return {"axis": call.axis("axis", "input")} if "axis" in call.args else {}


def quantize(call: Call) -> ir.Value:
    dtype = whole(call)
    scale, zero = scale_and_zero(call, dtype)
    x = call.value("input", T.FLOAT)
    made = call.w.typed(dtype, "QuantizeLinear", x, scale, zero, **axis_of(call))
    least, most = (int(call.number(f"quant_{end}")) for end in ("min", "max"))
    if (least, most) == (LEAST[dtype], LEAST[dtype] + 2 ** (dtype.bitwidth) - 1):
        return made
    bounds = [call.w.constant(np.int64(x), dtype) for x in (least, most)]
    return call.w("Clip", made, *bounds)


def dequantize(call: Call) -> ir.Value:
    dtype = call.type_of("input")
    if dtype not in BYTES:
        raise call.refuse(f"has quantized numbers of type {dtype.name.lower()}")
    scale, zero = scale_and_zero(call, dtype)
    x = call.value("input")
    how = axis_of(call)
    if "group_size" in call.args:
        columns = call.fake("input").shape[-1]
        how = {"axis": 1, "block_size": min(int(call["group_size"]), int(columns))}
    made = call.w.typed(T.FLOAT, "DequantizeLinear", x, scale, zero, **how)
    return call.w.cast(made, call.dtype)


def whole(call: Call) -> ir.DataType:
    """The integers' type; raises Unsupported for one that ONNX does not quantize to."""
    dtype = element_type(call["dtype"], call.node.name)
    if dtype not in BYTES:
        raise call.refuse(f"quantizes to {dtype.name.lower()}")
    return dtype


OPERATORS = {
    "quantize_per_tensor": quantize, "dequantize_per_tensor": dequantize,
    "quantize_per_channel": quantize, "dequantize_per_channel": dequantize,
    "dequantize_per_channel_group": dequantize,
}  # fmt: skip
