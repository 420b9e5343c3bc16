"""DynamicQuantizeLSTM, its weights dequantized.

ONNX Runtime quantizes what goes into each step, too, to be faster on its way; here the
steps are computed in floats, from the same weights.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from nanoloom.frontend.microsoft.replacement import Kind, Replacement

LSTM = 14  # the opset; what came later is for other types
ATTRIBUTES = {
    "activation_alpha": Kind.FLOATS, "activation_beta": Kind.FLOATS,
    "activations": Kind.STRINGS, "clip": Kind.FLOAT, "direction": Kind.STRING,
    "hidden_size": Kind.INT, "input_forget": Kind.INT,
}  # fmt: skip


def dynamic_quantize_lstm(b: Replacement) -> Sequence[ir.Value]:
    weights, recurrent = dequantized(b, 1, 8), dequantized(b, 2, 10)
    bias, *rest = (b.optional(index) for index in range(3, 8))
    given = {name: b.attribute(name, kind) for name, kind in ATTRIBUTES.items()}
    inputs = [b.input(0), weights, recurrent, bias, *rest]
    return b.ops("LSTM", *inputs, outputs=3, version=LSTM, **given)


def dequantized(b: Replacement, index: int, parameters: int) -> ir.Value:
    """[directions, inputs, gates] as LSTM takes it, [directions, gates, inputs].

    Scales and zero points: [directions], or [directions, gates].
    """
    whole, scale, zero = b.input(index), b.input(parameters), b.input(parameters + 1)
    kind = int(ir.DataType.FLOAT)
    moved = b.op(
        "Sub",
        b.op("Cast", whole, to=kind),
        each_input(b, b.op("Cast", zero, to=kind), b.rank(zero)),
    )
    made = b.op("Mul", moved, each_input(b, scale, b.rank(scale)))
    return b.op("Transpose", made, perm=[0, 2, 1])


def each_input(b: Replacement, x: ir.Value, rank: int) -> ir.Value:
    axes = b.numbers(1, 2) if rank == 1 else b.numbers(1)
    return b.op("Unsqueeze", x, axes)


OPERATORS = {"DynamicQuantizeLSTM": dynamic_quantize_lstm}
