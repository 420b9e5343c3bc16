"""Linear operations between DequantizeLinear and QuantizeLinear run in integers.

    Quantize(MatMul(Dequantize(a), Dequantize(B)) + c)  ->  nanoloom.integer.MatMul

with a constant B, per tensor or per column, for Gemm and Conv (per filter) as well,
with or without c, Relu and Quantize.  The new node, of
linalg/products/integer_products.py:

    saturate(round((sum (a - a0) (B - B0) + offset) * factor) + y0)  factor: sa sB / sy
    sum (a - a0) (B - B0) * factor + offset                          without Quantize

The sum is exact where a float32 evaluation rounds at every addition, and what follows
has one rounding of each operation.  Behind Quantize factor and offset are float64: the
8-bit result is that of the real numbers, up to ties that float64 cannot tell; it is
another than that of a float32 evaluation only where the latter has rounded a value
across a tie, and then by one step.

    Quantize(AveragePool(Dequantize(a)))  ->  nanoloom.integer.AveragePool(a)

too, GlobalAveragePool, and ReduceMean over all pixels: a product with ones, of
linalg/reductions/integer_pooling.py.

Products of two activations stay float: their right operand would have to be laid out
for integer dot products at every call, which costs more than the short sums gain.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import onnx_ir as ir

from nanoloom.graph.editor import GraphEditor
from nanoloom.graph.layout_effects import is_tensor_op
from nanoloom.graph.patterns.pattern import Found, Pattern, is_constant
from nanoloom.graph.patterns.rules import Rule, apply_rules
from nanoloom.graph.quantization import (
    DOMAIN,
    Quantized,
    activation,
    dequantized,
    exact_array,
    known_array,
    quantized,
    vector_along,
)
from nanoloom.graph.types import shape_of
from nanoloom.graph.value_origin import Origin, numbers, origin_of

SWAPPED = [1, 0]
FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
DEEPEST = (2**31 - 1) // 255**2  # products that an int32 always holds the sum of
MOST = (2**31 - 1) // 255  # numbers that it does
GLOBAL, MEAN = "GlobalAveragePool", "ReduceMean"
AVERAGES = {"AveragePool", GLOBAL, MEAN}

FUSED = "fused"  # attribute: multiply-adds of the target have one rounding

# Why a product stays in floats.
NO_BYTES = "its input is not of 8 bits with one scale, known while compiling"
NO_WEIGHT = "its weight is no constant of 8 bits with a scale for all or each column"
NO_BIAS = "its bias is no constant of a number for all or each column"
NO_SCALE = "a scale is zero"
TOO_DEEP = f"a sum of more than {DEEPEST} products may not fit 32 bits"


def integer_products(graph: ir.Graph, *, fuses: bool = False) -> dict[str, str]:
    """Rewrite a graph with static shapes in place.

    fuses: the target multiplies and adds f32 with one rounding; the results are the
    same without.  Gives why products of dequantized numbers stay in floats, by their
    nodes' names.
    """
    editor = IntegerProducts(graph, fuses)
    apply_rules(editor, (AVERAGE, QUANTIZED))
    for rule in (ADDED, ALONE):
        apply_rules(editor, (rule,))
    return editor.reasons


def average(graph: IntegerProducts, last: ir.Node, found: Found) -> bool:
    """Put the integer form in the place of an average that is quantized."""
    node, out = producer_of(found["made"]), last.outputs[0]
    given, target = activation(found["x"]), quantized(last)
    if given is None or target is None or not is_average(node):
        return False
    image = shape_of(given.value)
    factor = given.scale.astype(np.float64) / target.scale
    if np.prod(image[2:], dtype=np.int64) > MOST or not np.isfinite(factor):
        return False
    arrays = {"a_zero": given.zero, "factor": factor, "y_zero": target.zero}
    mean = node.op_type == MEAN
    op = GLOBAL if mean else node.op_type
    kept = [] if mean else list(node.attributes.values())
    shape = (*image[:2], *(1 for _ in image[2:])) if mean else shape_of(out)
    inputs = [given.value, *graph.constants(node, arrays)]
    name = node.name or node.op_type
    made = graph.add(last, op, inputs, kept, shape, out, name, DOMAIN)
    graph.replace(last, graph.reshape(made, shape_of(out), last))
    return True


def product(graph: IntegerProducts, last: ir.Node, found: Found) -> bool:
    """The same of a product, with what the pattern has behind it."""
    node, added = producer_of(found.get("made", last.outputs[0])), found.get("c")
    own = Origin.of(node).input(2)
    if not reads_bytes(node) or None not in (added, own):
        return False
    if last.op_type == "QuantizeLinear" and quantized(last) is None:
        return False
    why = graph.visit(node, last, added)
    if why and last is node:
        graph.reasons[node.name or node.op_type] = why
    return not why


def producer_of(value: ir.Value) -> ir.Node:
    node = value.producer()
    assert node is not None, "the pattern has one"
    return node


def reads_bytes(node: ir.Node) -> bool:
    """Whether a node has dequantized 8-bit numbers as an input."""
    return any(dequantized(origin_of(value)) is not None for value in node.inputs)


@dataclass
class IntegerProducts(GraphEditor):
    """The graph being rewritten.  reasons: why products stay in floats."""

    fused: bool = False
    reasons: dict[str, str] = field(default_factory=dict[str, str])

    def visit(self, node: ir.Node, last: ir.Node, added: ir.Value | None) -> str:
        """Put the integer form in the place of a product; says why if it has none."""
        is_conv, given, out = node.op_type == "Conv", Origin.of(node), node.outputs[0]
        factors = (given.attributes.get(name) for name in ("alpha", "beta"))
        if any(x is not None and x.as_float() != 1 for x in factors):
            return "its alpha or beta is not 1"
        left, swapped = activation(node.inputs[0]), given.int("transB", 0) == 1
        right = self.filters(node) if is_conv else self.weight(node, swapped)
        if left is None or right is None:
            return NO_BYTES if left is None else NO_WEIGHT
        own, shape = given.input(2), shape_of(right.value)
        bias = own or added
        offset = vector_along(1 if is_conv else -1, bias, out)
        if is_conv and own is not None:
            offset = exact_array(own)
        if bias is not None and offset is None:
            return NO_BIAS
        if np.prod(shape[1:] if is_conv else shape[-2:-1], dtype=np.int64) > DEEPEST:
            return TOO_DEEP
        sizes = {x.shape for x in (offset, right.scale, right.zero) if x is not None}
        if is_conv and not sizes <= {(), shape[:1]}:
            return NO_WEIGHT  # it is refused where it is lowered
        if not scales(left, right).all():
            return NO_SCALE
        if given.int("transA", 0):
            left = replace(left, value=self.transpose(left.value, SWAPPED, node))
        self.rewrite(node, left, right, offset, last)
        return ""

    def constants(
        self, node: ir.Node, arrays: Mapping[str, np.ndarray | None]
    ) -> list[ir.Value | None]:
        name = node.name or node.op_type
        return [
            None if array is None else self.constant(array, f"{name}/{word}")
            for word, array in arrays.items()
        ]

    def filters(self, node: ir.Node) -> Quantized | None:
        """Constant weights [f, c, kernel...] of 8-bit integers."""
        origin = origin_of(node.inputs[1])
        found = dequantized(origin)
        if found is None or origin is None or found.value.const_value is None:
            return None
        if found.scale.ndim and origin.int("axis", 1) % len(shape_of(found.value)):
            return None
        return Quantized(self.registered(found.value), found.scale, found.zero)

    def weight(self, node: ir.Node, swapped: bool) -> Quantized | None:
        """A constant right operand [..., k, columns] of 8-bit integers."""
        value = node.inputs[1]
        origin = origin_of(value)
        if origin is not None and origin.op == "Transpose":
            value = origin.inputs[0]
            if value is None or len(shape_of(value)) != 2:
                return None
            swapped, origin = not swapped, origin_of(value)
        found = dequantized(origin)
        if found is None or origin is None or found.value.const_value is None:
            return None
        rank = len(shape_of(found.value))
        column = rank - 2 if swapped else rank - 1
        if rank < 2 or (found.scale.ndim and origin.int("axis", 1) % rank != column):
            return None
        stored = self.registered(found.value)
        turned = self.transpose(stored, SWAPPED, node) if swapped else stored
        return Quantized(turned, found.scale, found.zero)

    def rewrite(
        self,
        node: ir.Node,
        x: Quantized,
        y: Quantized,
        offset: np.ndarray | None,
        last: ir.Node,
    ) -> None:
        """Nodes up to the last of the pattern become one."""
        factor, kind = x.scale.astype(np.float64) * y.scale, FLOAT32
        target, relu, out = quantized(last), False, last.outputs[0]
        if target is not None:
            kind, before = FLOAT64, last.inputs[0]
            relu = before is not None and is_tensor_op(producer_of(before), {"Relu"})
            offset = None if offset is None else offset / factor  # in steps of the sums
            factor = factor / target.scale
        name = node.name or node.op_type
        arrays = {
            "a_zero": x.zero,
            "b_zero": y.zero,
            "factor": factor.astype(kind),
            "offset": None if offset is None else offset.astype(kind),
            "y_zero": None if target is None else target.zero,
        }
        inputs = [x.value, y.value, *self.constants(node, arrays)]
        attributes: list[ir.Attr] = [
            ir.AttrInt64("relu", int(relu)),
            ir.AttrInt64(FUSED, int(self.fused)),
        ]
        op = "Convolution" if node.op_type == "Conv" else "MatMul"
        if node.op_type == "Conv":
            attributes += node.attributes.values()
        made = self.add(last, op, inputs, attributes, shape_of(out), out, name, DOMAIN)
        self.replace(last, made)


def scales(x: Quantized, y: Quantized) -> np.ndarray:
    """What a product of their integers is worth, [] or [columns]."""
    return x.scale.astype(np.float64) * y.scale


def is_average(node: ir.Node) -> bool:
    """Whether an average is of windows, or of all pixels of an image."""
    image, rank = node.inputs[0], 0
    axes = numbers(node, "axes")
    if len(node.inputs) > 1 and (given := known_array(node.inputs[1])) is not None:
        axes = [int(a) for a in given.reshape(-1)]
    if image is not None:
        rank = len(shape_of(image))
    every = rank > 2 and sorted(a % rank for a in axes) == list(range(2, rank))
    return every or node.op_type != MEAN


PRODUCT = "(Conv | Gemm | MatMul)"
MADE = f"(made := {PRODUCT}(...))"
SUM = f"Add({MADE}, c)"
AVERAGE = Rule(
    Pattern(f"QuantizeLinear(made := ({' | '.join(sorted(AVERAGES))})(x, ...), ...)"),
    average,
)
QUANTIZED = Rule(
    Pattern(
        f"QuantizeLinear(Relu({SUM} | {MADE}) | {SUM} | {MADE}, ...)",
        c=is_constant,
    ),
    product,
)
ADDED = Rule(Pattern(SUM, c=is_constant), product)
ALONE = Rule(Pattern(f"{PRODUCT}(...)"), product)
