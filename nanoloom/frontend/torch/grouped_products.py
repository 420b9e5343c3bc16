"""Products of groups of rows, each with a matrix of its own: experts' layers.

    y[s] = x[s] @ w[e]   for offs[e - 1] <= s < offs[e];   0 behind the last group

A Scan over the matrices: none is copied for each of its rows.
"""

from __future__ import annotations

import onnx_ir as ir

from nanoloom.frontend.torch.call import Call
from nanoloom.frontend.torch.writer import INT64


def grouped(call: Call) -> ir.Value:
    """transformers' own operator: input [S, K], weight [E, K, N], offs [E]."""
    w, dtype = call.w, call.dtype
    x, weight, ends = (
        call.value("input", dtype), call.value("weight", dtype),
        call.value("offs", INT64),
    )  # fmt: skip
    shape = call.vector(call.out.shape)
    begin = w("Expand", w.constant(0, dtype), shape)
    rows = w("Range", w.constant(0), w.scalar(shape_of(call, 0)), w.constant(1))
    rows = w("Unsqueeze", rows, w.constant([1]))
    body = body_of(call, x, rows)
    made = w(
        "Scan", begin, w.constant([0]), weight, ends, count=2, body=body,
        num_scan_inputs=2,
    )  # fmt: skip
    return made[0]


def shape_of(call: Call, axis: int) -> ir.Value:
    return call.of(call.out.shape[axis], INT64)


def body_of(call: Call, x: ir.Value, rows: ir.Value) -> ir.Graph:
    """One group: (results so far, where it begins), (matrix, where it ends)."""
    w, outer = call.w, call.w.graph
    shapes = call.sizes.dims(call.out.shape), call.sizes.dims(call.fake("weight").shape)
    w.graph = ir.Graph([], [], nodes=[], name=w.name(f"{w.place}.body"))
    try:
        before = w.input(f"{w.place}.before", call.dtype, shapes[0])
        start = w.input(f"{w.place}.start", INT64, [1])
        matrix = w.input(f"{w.place}.matrix", call.dtype, shapes[1][1:])
        end = w.input(f"{w.place}.end", INT64, [])
        own = w("And", w("GreaterOrEqual", rows, start), w("Less", rows, end))
        made = w("Where", own, w("MatMul", x, matrix), before)
        made.dtype, made.shape = call.dtype, ir.Shape(shapes[0])
        after = w("Unsqueeze", end, w.constant([0]))
        w.graph.outputs.extend((made, after))
        return w.graph
    finally:
        w.graph = outer


OPERATORS = {"grouped_mm_fallback": grouped}

__all__ = ["OPERATORS"]
