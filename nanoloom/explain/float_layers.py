"""Layers of a quantized network that are computed in floats, each with its reason.

A layer between integers reads them and gives them.  Elementwise operations between
DequantizeLinear and QuantizeLinear do, in one kernel: no floats are in memory.
"""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir

from nanoloom.frontend.problems import Problem
from nanoloom.graph.integer_movement import MOVES
from nanoloom.graph.layout_effects import ONE_TO_ONE, is_tensor_op
from nanoloom.graph.quantization import BYTES, DOMAIN, quantizes_alike
from nanoloom.graph.stage import IN_FLOATS

THROUGH = ONE_TO_ONE | MOVES | {"BatchNormalization"}
QUANTIZERS = ("QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear")
NO_FORM = "there is no integer form of this operator here"
NOT_QUANTIZED = "its result is not quantized at once, per tensor to 8 bits"
QUANTIZE = "put QuantizeLinear behind it, or behind a Relu that follows it"


def is_quantized(model: onnx_ir.Model) -> bool:
    """Whether numbers are converted to integers or from them."""
    return any(node.op_type in QUANTIZERS for node in model.graph.all_nodes())


def float_layers_in(optimized: onnx_ir.Model) -> tuple[Problem, ...]:
    """The layers of a model as it leaves the graph stage."""
    reasons: Mapping[str, str] = optimized.meta[IN_FLOATS]
    found = (layer_of(node, reasons) for node in optimized.graph)
    return tuple(layer for layer in found if layer is not None)


def layer_of(node: onnx_ir.Node, reasons: Mapping[str, str]) -> Problem | None:
    """What to say of a node, None if it is none of these layers."""
    name = node.name or node.op_type
    if node.domain == DOMAIN:
        is_float = node.outputs[0].dtype not in BYTES
        kept = is_float and bool(node.outputs[0].uses())
        return Problem(name, NOT_QUANTIZED, QUANTIZE, node.op_type) if kept else None
    if name in reasons:
        return Problem(name, reasons[name], "", node.op_type)
    if node.op_type in QUANTIZERS or node.op_type in THROUGH:
        return None
    if node.outputs[0].dtype in BYTES:  # moved, as they were stored
        return None
    if not any(reads_integers(value) for value in node.inputs):
        return None
    return Problem(name, NO_FORM, "", node.op_type)


def reads_integers(value: onnx_ir.Value | None) -> bool:
    """Whether a value is made of dequantized bytes, elementwise or by moves."""
    waiting, seen = [value], set[onnx_ir.Node]()
    while waiting:
        current = waiting.pop()
        node = None if current is None else current.producer()
        if current is None or node is None or node in seen:
            continue
        seen.add(node)
        if node.op_type == "DequantizeLinear":
            source = node.inputs[0]
            if source is not None and source.dtype in BYTES:
                return True
        elif quantizes_alike(node) or is_tensor_op(node, THROUGH):
            waiting += node.inputs
    return False
