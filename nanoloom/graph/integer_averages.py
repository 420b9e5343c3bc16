"""Averages between DequantizeLinear and QuantizeLinear run in integers.

    Quantize(AveragePool(Dequantize(a)))  ->  nanoloom.integer.AveragePool(a)

and GlobalAveragePool, or ReduceMean over all pixels.  The new node is one of
linalg/reductions/integer_pooling.py, which rounds what exact arithmetic gives: a
float32 evaluation rounds at every addition before.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from nanoloom.graph.editor import GraphEditor
from nanoloom.graph.layout_effects import is_tensor_op
from nanoloom.graph.quantization import (
    BYTES,
    DOMAIN,
    Quantized,
    activation,
    known_array,
    only_user,
    quantization,
)
from nanoloom.graph.types import is_static, shape_of
from nanoloom.graph.value_origin import Origin

GLOBAL, MEAN = "GlobalAveragePool", "ReduceMean"
AVERAGES = {"AveragePool", GLOBAL, MEAN}
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
        if node.op_type == MEAN and not is_global(node):
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
        inputs, result = [given.value, *constants], shape_of(wanted.value)
        if node.op_type != MEAN:
            kept = list(node.attributes.values())
            op, shape = node.op_type, result
        else:
            image = shape_of(given.value)
            op, kept, shape = GLOBAL, [], (*image[:2], *(1 for _ in image[2:]))
        made = self.add(last, op, inputs, kept, shape, wanted.value, name, DOMAIN)
        if tuple(shape) != tuple(result):
            sizes = self.constant(np.array(result, np.int64), f"{name}/shape")
            out = wanted.value
            made = self.add(last, "Reshape", [made, sizes], [], result, out, name)
        self.replace(last, made)


def is_global(mean: ir.Node) -> bool:
    """Whether a ReduceMean of an image is over all of its pixels."""
    image, given = mean.inputs[0], mean.attributes.get("axes")
    rank = 0 if image is None else len(shape_of(image))
    if len(mean.inputs) > 1 and mean.inputs[1] is not None:
        array = known_array(mean.inputs[1])
        axes = [] if array is None else [int(a) for a in array.reshape(-1)]
    else:
        axes = [] if given is None else list(given.as_ints())
    return rank > 2 and sorted(a % rank for a in axes) == list(range(2, rank))
