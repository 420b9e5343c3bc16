"""Products between DequantizeLinear and QuantizeLinear run in integers.

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

Products of two activations stay float: their right operand would have to be laid out
for integer dot products at every call, which costs more than the short sums gain.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from nanoloom.graph.editor import GraphEditor
from nanoloom.graph.quantization import (
    BYTES,
    DOMAIN,
    Quantized,
    activation,
    dequantized,
    exact_array,
    only_user,
    quantization,
)
from nanoloom.graph.types import is_static, shape_of
from nanoloom.graph.value_origin import Origin, origin_of

SWAPPED = [1, 0]
FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
DEEPEST = (2**31 - 1) // 255**2  # products that an int32 always holds the sum of


FUSED = "fused"  # attribute: multiply-adds of the target have one rounding

# Why a product stays in floats.
NO_BYTES = "its input is not of 8 bits with one scale, known while compiling"
NO_WEIGHT = "its weight is no constant of 8 bits with a scale for all or each column"
NO_BIAS = "its bias is no constant of a number for all or each column"
NO_SCALE = "a scale is zero"
TOO_DEEP = f"a sum of more than {DEEPEST} products may not fit 32 bits"


@dataclass(frozen=True)
class Tail:
    """What follows a product: constants added to its columns, Relu, quantization.

    last: the value that the whole pattern gives.
    """

    last: ir.Value
    offset: np.ndarray | None
    relu: bool = False
    target: Quantized | None = None


def integer_products(graph: ir.Graph, *, fuses: bool = False) -> dict[str, str]:
    """Rewrite a graph with static shapes in place.

    fuses: the target multiplies and adds f32 with one rounding; the results are the
    same without.  Gives why products of dequantized numbers stay in floats, by their
    nodes' names.
    """
    editor = IntegerProducts(graph, fuses)
    reasons: dict[str, str] = {}
    for node in graph:
        if node.domain not in ("", "ai.onnx") or not is_static(node.outputs[0]):
            continue
        if node.op_type not in ("Conv", "Gemm", "MatMul") or not reads_bytes(node):
            continue
        is_conv = node.op_type == "Conv"
        why = editor.visit_convolution(node) if is_conv else editor.visit_product(node)
        if why:
            reasons[node.name or node.op_type] = why
    return reasons


def reads_bytes(node: ir.Node) -> bool:
    """Whether a node has dequantized 8-bit numbers as an input."""
    return any(dequantized(origin_of(value)) is not None for value in node.inputs)


@dataclass
class IntegerProducts(GraphEditor):
    """The graph being rewritten."""

    fused: bool = False

    def visit_product(self, node: ir.Node) -> str:
        """Put the integer form in the place of a product; says why if it has none."""
        is_gemm = node.op_type == "Gemm"
        given = Origin.of(node).attributes
        if any(given[k].as_float() != 1 for k in ("alpha", "beta") if k in given):
            return "its alpha or beta is not 1"
        left = activation(node.inputs[0])
        right = self.weight(node, is_gemm and Origin.of(node).int("transB", 0) == 1)
        if left is None or right is None:
            return NO_BYTES if left is None else NO_WEIGHT
        if shape_of(right.value)[-2] > DEEPEST:
            return TOO_DEEP
        if not scales(left, right).all():
            return NO_SCALE
        first: ir.Value | None = None
        if is_gemm and len(node.inputs) > 2 and node.inputs[2] is not None:
            first = node.inputs[2]
            if vector_along(-1, first, node.outputs[0]) is None:
                return NO_BIAS
        x = left.value
        if is_gemm and Origin.of(node).int("transA", 0):
            x = self.transpose(x, SWAPPED, node)
        offset = vector_along(-1, first, node.outputs[0])
        tail = follow_tail(node.outputs[0], offset, -1)
        self.rewrite(node, Quantized(x, left.scale, left.zero), right, tail)
        return ""

    def visit_convolution(self, node: ir.Node) -> str:
        """The same for a convolution with constant filters."""
        left, right = activation(node.inputs[0]), self.filters(node)
        bias = node.inputs[2] if len(node.inputs) > 2 else None
        offset = exact_array(bias)
        if left is None or right is None:
            return NO_BYTES if left is None else NO_WEIGHT
        if bias is not None and offset is None:
            return NO_BIAS
        filters, *deep = shape_of(right.value)
        if np.prod(deep, dtype=np.int64) > DEEPEST:
            return TOO_DEEP
        sizes = {x.shape for x in (offset, right.scale, right.zero) if x is not None}
        if not sizes <= {(), (filters,)}:
            return NO_WEIGHT  # it is refused where it is lowered
        if not scales(left, right).all():
            return NO_SCALE
        tail = follow_tail(node.outputs[0], offset, 1)
        self.rewrite(node, left, right, tail)
        return ""

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

    def rewrite(self, node: ir.Node, x: Quantized, y: Quantized, tail: Tail) -> None:
        """Nodes up to the last of the pattern become one."""
        factor, offset, kind = (
            x.scale.astype(np.float64) * y.scale,
            tail.offset,
            FLOAT32,
        )
        if (target := tail.target) is not None:
            kind = FLOAT64
            offset = None if offset is None else offset / factor  # in steps of the sums
            factor = factor / target.scale
        name = node.name or node.op_type
        arrays = (
            x.zero,
            y.zero,
            factor.astype(kind),
            None if offset is None else offset.astype(kind),
            None if target is None else target.zero,
        )
        words = ("a_zero", "b_zero", "factor", "offset", "y_zero")
        constants = [
            None if array is None else self.constant(array, f"{name}/{word}")
            for word, array in zip(words, arrays, strict=True)
        ]
        last = tail.last.producer()
        assert last is not None
        inputs = [x.value, y.value, *constants]
        shape = shape_of(tail.last)
        attributes: list[ir.Attr] = [
            ir.AttrInt64("relu", int(tail.relu)),
            ir.AttrInt64(FUSED, int(self.fused)),
        ]
        op = "Convolution" if node.op_type == "Conv" else "MatMul"
        if node.op_type == "Conv":
            attributes += node.attributes.values()
        made = self.add(last, op, inputs, attributes, shape, tail.last, name, DOMAIN)
        self.replace(last, made)


def scales(x: Quantized, y: Quantized) -> np.ndarray:
    """What a product of their integers is worth, [] or [columns]."""
    return x.scale.astype(np.float64) * y.scale


def vector_along(axis: int, value: ir.Value | None, out: ir.Value) -> np.ndarray | None:
    """A constant that only differs along an axis of what it is added to: [n] or []."""
    if value is None or value.const_value is None or not is_static(value):
        return None
    whole = shape_of(out)
    shape = (*(1,) * (len(whole) - len(shape_of(value))), *shape_of(value))
    size = int(np.prod(shape, dtype=np.int64))
    fits = size == 1 or shape[axis] == size == whole[axis]
    array = exact_array(value) if fits and len(shape) == len(whole) else None
    return None if array is None else array.reshape(() if size == 1 else (size,))


def follow_tail(out: ir.Value, offset: np.ndarray | None, axis: int) -> Tail:
    """Additions of vectors along an axis, Relu and one quantization behind a product.

    offset: what is added by the product itself.
    """
    user = only_user(out)
    if user is not None and user.op_type == "Add" and offset is None:
        other = next((v for v in user.inputs if v is not out), None)
        offset = vector_along(axis, other, out)
        if offset is not None:
            out = user.outputs[0]
            user = only_user(out)
    whole, relu = out, user is not None and user.op_type == "Relu"
    if user is not None and relu:
        whole = user.outputs[0]
        user = only_user(whole)
    if user is None or user.op_type != "QuantizeLinear" or user.inputs[0] is not whole:
        return Tail(out, offset)
    result = user.outputs[0]
    target = quantization(Origin.of(user), result)
    plain = result.dtype in BYTES and not user.attributes.get("precision")
    if target is None or target.scale.ndim or not plain or not is_static(result):
        return Tail(out, offset)
    return Tail(result, offset, relu, target)
