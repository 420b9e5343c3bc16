"""Products of matrices and convolutions with what ONNX Runtime fuses into them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx_ir as ir

from nanoloom.frontend.microsoft.activations import activate
from nanoloom.frontend.microsoft.replacement import Refused, Replacement

OF_ACTIVATION = "activation_"  # its parameters
WINDOW = ("dilations", "kernel_shape", "pads", "strides")


def fused_mat_mul(b: Replacement) -> ir.Value:
    """alpha * A @ B, either one transposed."""
    left = transposed(b, b.input(0), b.int("transA", 0), b.int("transBatchA", 0))
    right = transposed(b, b.input(1), b.int("transB", 0), b.int("transBatchB", 0))
    made, alpha = b.op("MatMul", left, right), b.float("alpha", 1.0)
    return made if alpha == 1.0 else b.op("Mul", made, b.scalar(alpha, made))


def transposed(b: Replacement, x: ir.Value, last: int, batch: int) -> ir.Value:
    """last: the last two axes change places.  batch: the first one has the rows."""
    if not last and not batch:
        return x
    order = list(range(b.rank(x)))
    if len(order) < 2:
        return x
    if batch:
        order = [*order[1:-1], order[0], order[-1]]
    if last:
        order[-2:] = order[:-3:-1]
    return b.op("Transpose", x, perm=order)


def fused_mat_mul_activation(b: Replacement) -> ir.Value:
    return activated(b, fused_mat_mul(b))


def fused_gemm(b: Replacement) -> ir.Value:
    made = b.op(
        "Gemm", b.input(0), b.input(1), b.optional(2),
        alpha=b.float("alpha", 1.0), beta=b.float("beta", 1.0),
        transA=b.int("transA", 0), transB=b.int("transB", 0),
    )  # fmt: skip
    return activated(b, made)


def activated(b: Replacement, x: ir.Value) -> ir.Value:
    given = {
        name.removeprefix(OF_ACTIVATION): b.float(name)
        for name in b.node.attributes
        if name.startswith(OF_ACTIVATION)
    }
    return activate(b, x, b.string("activation", ""), given)


def fused_conv(b: Replacement) -> ir.Value:
    """activation(Conv(X) + Z)."""
    made = convolved(b, b.input(0))
    return finished(b, made, b.optional(3))


def nhwc_fused_conv(b: Replacement) -> ir.Value:
    """The same of images whose channels are last."""
    made = channels_last(b, convolved(b, channels_first(b, b.input(0))))
    return finished(b, made, b.optional(3))


def nhwc_conv(b: Replacement) -> ir.Value:
    return channels_last(b, convolved(b, channels_first(b, b.input(0))))


def convolved(b: Replacement, x: ir.Value) -> ir.Value:
    attributes = {name: b.ints(name) for name in WINDOW}
    return b.op(
        "Conv", x, b.input(1), b.optional(2), group=b.int("group", 1),
        **same_size(b, attributes),
    )  # fmt: skip


def same_size(b: Replacement, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """With auto_pad, where that says anything; pads beside it say nothing then."""
    mode = b.string("auto_pad", "NOTSET")
    if mode in ("", "NOTSET"):
        return {**attributes}
    return {**attributes, "pads": None, "auto_pad": mode}


def finished(b: Replacement, x: ir.Value, added: ir.Value | None) -> ir.Value:
    total = x if added is None else b.op("Add", x, added)
    given = list(b.floats("activation_params") or ())
    return activate(b, total, b.string("activation", ""), given)


def channels_first(b: Replacement, x: ir.Value) -> ir.Value:
    rank = b.rank(x)
    if rank < 3:
        raise Refused(f"its input {x.name} has {rank} dimensions")
    return b.op("Transpose", x, perm=[0, rank - 1, *range(1, rank - 1)])


def channels_last(b: Replacement, x: ir.Value) -> ir.Value:
    rank = b.rank(x)
    return b.op("Transpose", x, perm=[0, *range(2, rank), 1])


OPERATORS = {
    "FusedConv": fused_conv,
    "FusedGemm": fused_gemm,
    "FusedMatMul": fused_mat_mul,
    "FusedMatMulActivation": fused_mat_mul_activation,
    "NhwcConv": nhwc_conv,
    "NhwcFusedConv": nhwc_fused_conv,
    "TransposeMatMul": fused_mat_mul,
}
