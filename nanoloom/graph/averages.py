"""Averages between DequantizeLinear and QuantizeLinear run in integers.

    Quantize(AveragePool(Dequantize(a)))  ->  nanoloom.integer.AveragePool(a)

and GlobalAveragePool.  The new node, of linalg/reductions/integer_pooling.py, rounds
what exact arithmetic gives: a float32 evaluation rounds at every addition before.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from nanoloom.graph.editor import GraphEditor
from nanoloom.graph.orders import is_tensor_op
from nanoloom.graph.origin import Origin
from nanoloom.graph.quantization import (
    BYTES,
    DOMAIN,
    Quantized,
    activation,
    only_user,
    quantization,
)
from nanoloom.graph.types import is_static, shape_of

AVERAGES = {"AveragePool", "GlobalAveragePool"}
MOST = (2**31 - 1) // 255  # numbers that an int32 always holds the sum of


def integer_averages(graph: ir.Graph) -> None:
    """Rewrite a graph with static shapes in place."""
    rewriting = Averages(graph)
    for node in graph:
        if is_tensor_op(node, AVERAGES) and is_static(node.outputs[0]):
            rewriting.visit(node)


@dataclass
class Averages(GraphEditor):
    """The graph being rewritten."""

    def visit(self, node: ir.Node) -> None:
        """Put the integer form in the place of an average and what quantizes it."""
        given, last = activation(node.inputs[0]), only_user(node.outputs[0])
        if given is None or last is None or last.op_type != "QuantizeLinear":
            return
        out = last.outputs[0]
        wanted = quantization(Origin.of(last), out)
        if wanted is None or wanted.scale.ndim or out.dtype not in BYTES:
            return
        if last.inputs[0] is not node.outputs[0] or last.attributes.get("precision"):
            return
        if np.prod(shape_of(given.value)[2:], dtype=np.int64) > MOST:
            return
        factor = given.scale.astype(np.float64) / wanted.scale
        if not np.isfinite(factor):
            return
        self.rewrite(node, given, wanted, factor)

    def rewrite(
        self, node: ir.Node, given: Quantized, wanted: Quantized, factor: np.ndarray
    ) -> None:
        """One node for both."""
        name, last = node.name or node.op_type, wanted.value.producer()
        assert last is not None
        words = (("a_zero", given.zero), ("factor", factor), ("y_zero", wanted.zero))
        constants = [
            None if array is None else self.constant(array, f"{name}/{word}")
            for word, array in words
        ]
        made = self.add(
            last,
            node.op_type,
            [given.value, *constants],
            list(node.attributes.values()),
            shape_of(wanted.value),
            wanted.value,
            name,
            DOMAIN,
        )
        self.replace(last, made)
