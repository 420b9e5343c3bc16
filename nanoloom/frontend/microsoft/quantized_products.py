"""Products of quantized matrices, and of floats with quantized weights."""

from __future__ import annotations

import onnx_ir as ir

from nanoloom.frontend.microsoft.quantized import one
from nanoloom.frontend.microsoft.replacement import Refused, Replacement


def integer_product(
    b: Replacement,
    left: ir.Value,
    right: ir.Value,
    left_scale: ir.Value,
    right_scale: ir.Value,
    left_zero: ir.Value | None,
    right_zero: ir.Value | None,
) -> ir.Value:
    """A product of integers, times both scales.

    What belongs to the right operand is one number, or one for each column.
    """
    if b.extent(left_scale, -1) not in (None, 1):
        raise Refused(f"its scale {left_scale.name} is one for each row")
    left_zero = None if left_zero is None else one(b, left_zero)
    if right_zero is not None and b.types.shape(right_zero) == [1]:
        right_zero = one(b, right_zero)
    made = b.op("MatMulInteger", left, right, left_zero, right_zero)
    scale = b.op("Mul", one(b, left_scale), right_scale)
    whole = b.op("Cast", made, to=int(b.dtype(left_scale)))
    return b.op("Mul", whole, scale)


def with_bias(b: Replacement, x: ir.Value, bias: ir.Value | None) -> ir.Value:
    return x if bias is None else b.op("Add", x, bias)


def mat_mul_integer_to_float(b: Replacement) -> ir.Value:
    left, right, zeros = b.input(0), b.input(1), (b.optional(4), b.optional(5))
    made = integer_product(b, left, right, b.input(2), b.input(3), *zeros)
    return with_bias(b, made, b.optional(6))


def dynamic_quantize_mat_mul(b: Replacement) -> ir.Value:
    """The left operand is quantized when the program runs."""
    left, scale, zero = b.ops("DynamicQuantizeLinear", b.input(0), outputs=3)
    made = integer_product(b, left, b.input(1), scale, b.input(2), zero, b.optional(3))
    return with_bias(b, made, b.optional(4))


def quantized_gemm(b: Replacement) -> ir.Value:
    """Gemm of dequantized operands, its result quantized where it has a scale.

    The bias is in steps of both scales together.
    """
    turned, alpha = b.int("transB", 0), b.float("alpha", 1.0)
    a, a_scale, a_zero = b.input(0), one(b, b.input(1)), one(b, b.input(2))
    w, w_scale, w_zero = b.input(3), b.input(4), b.input(5)
    if b.extent(w_scale, 0) == 1:
        w_scale, w_zero = one(b, w_scale), one(b, w_zero)
    elif b.extent(w_zero, 0) == 1:
        w_zero = b.op("Expand", w_zero, b.op("Shape", w_scale))
    left = b.op("DequantizeLinear", a, a_scale, a_zero)
    right = b.op("DequantizeLinear", w, w_scale, w_zero, axis=0 if turned else 1)
    bias = b.optional(6)
    if bias is not None:
        step = b.op("Mul", a_scale, w_scale)
        if alpha != 1.0:
            step = b.op("Mul", step, b.scalar(alpha, step))
        bias = dequantized_bias(b, bias, step)
    made = b.op(
        "Gemm", left, right, bias, alpha=alpha, transA=b.int("transA", 0), transB=turned
    )
    scale, zero = b.optional(7), b.optional(8)
    if scale is None:
        return made
    start = b.scalar(0, a) if zero is None else one(b, zero)
    return b.op("QuantizeLinear", made, one(b, scale), start)


def dequantized_bias(b: Replacement, bias: ir.Value, step: ir.Value) -> ir.Value:
    """Its last axis has the columns, whose scales the step may hold."""
    if b.types.shape(step) == []:
        return b.op("DequantizeLinear", bias, step)
    if b.rank(bias) == 1 and b.extent(bias, 0) != 1:
        return b.op("DequantizeLinear", bias, step, axis=0)
    return b.op("Mul", b.op("Cast", bias, to=int(ir.DataType.FLOAT)), step)


def mat_mul_integer16(b: Replacement) -> ir.Value:
    wide = (b.op("Cast", b.input(i), to=int(ir.DataType.INT32)) for i in (0, 1))
    made = b.op("MatMul", *wide)
    if ir.DataType.INT16 in (b.dtype(b.input(0)), b.dtype(b.input(1))):
        return made
    return b.op("Cast", made, to=int(ir.DataType.UINT32))


OPERATORS = {
    "DynamicQuantizeMatMul": dynamic_quantize_mat_mul,
    "MatMulInteger16": mat_mul_integer16,
    "MatMulIntegerToFloat": mat_mul_integer_to_float,
    "QGemm": quantized_gemm,
}
