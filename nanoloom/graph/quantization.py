"""What (De)QuantizeLinear says of integers: scales and zero points that are known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from nanoloom.graph.types import is_static, shape_of
from nanoloom.graph.value_origin import Origin, origin_of

DOMAIN = "nanoloom.integer"
BYTES = (ir.DataType.INT8, ir.DataType.UINT8)
BITS = np.arange(256, dtype=np.uint8)  # of all numbers of 8 bits


@dataclass(frozen=True)
class Quantized:
    """Integers [..., columns] with a scale, and a zero point or None if that is 0.

    Scale and zero point: of shape [] or [columns].
    """

    value: ir.Value
    scale: np.ndarray
    zero: np.ndarray | None

    @property
    def kind(self) -> np.dtype:
        """The integers' type."""
        assert self.value.dtype is not None
        return self.value.dtype.numpy()


def quantizes_alike(node: ir.Node) -> bool:
    """Whether a node (de)quantizes all elements in the same way: it is elementwise."""
    if node.op_type not in ("QuantizeLinear", "DequantizeLinear") or node.domain:
        return False
    return all(v is None or np.prod(shape_of(v)) == 1 for v in node.inputs[1:])


def known_array(value: ir.Value | None) -> np.ndarray | None:
    """A constant's array."""
    if value is None or value.const_value is None:
        return None
    return value.const_value.numpy()


def quantization(origin: Origin, value: ir.Value) -> Quantized | None:
    """Input 1 and 2 of (De)QuantizeLinear, if they are constants of one block."""
    scale = known_array(origin.input(1))
    zero = known_array(origin.input(2))
    if scale is None or scale.dtype != np.float32 or origin.int("block_size", 0):
        return None
    if zero is None and origin.input(2) is not None:
        return None
    if scale.size == 1:
        scale = scale.reshape(())
        zero = None if zero is None else zero.reshape(())
    if zero is not None and not zero.any():
        zero = None
    return Quantized(value, scale, zero)


def dequantized(origin: Origin | None) -> Quantized | None:
    """8-bit integers behind a DequantizeLinear to float32."""
    if origin is None or origin.op != "DequantizeLinear":
        return None
    value = origin.input(0)
    if value is None or value.dtype not in BYTES or not is_static(value):
        return None
    return quantization(origin, value)


def activation(value: ir.Value | None) -> Quantized | None:
    """One scale and zero point for all, at least a matrix."""
    found = dequantized(origin_of(value))
    if found is None or found.scale.ndim or len(shape_of(found.value)) < 2:
        return None
    return found


def exact_array(value: ir.Value | None) -> np.ndarray | None:
    """A constant in float64; dequantized integers are not rounded to float32."""
    array = known_array(value)
    origin = origin_of(value)
    if array is None or origin is None or origin.op != "DequantizeLinear":
        return None if array is None else array.astype(np.float64)
    whole = known_array(origin.input(0))
    assert origin.inputs[0] is not None
    found = quantization(origin, origin.inputs[0])
    if whole is None or found is None or whole.ndim > 1:
        return array.astype(np.float64)
    zero = 0 if found.zero is None else found.zero.astype(np.int64)
    return (whole.astype(np.int64) - zero) * found.scale.astype(np.float64)


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


def quantized(node: ir.Node) -> Quantized | None:
    """What a QuantizeLinear makes, if it has 8 bits and one scale for all."""
    out, origin = node.outputs[0], Origin.of(node)
    found = quantization(origin, out) if origin.op == "QuantizeLinear" else None
    plain = out.dtype in BYTES and not node.attributes.get("precision")
    return found if found is not None and not found.scale.ndim and plain else None


def only_user(value: ir.Value) -> ir.Node | None:
    """The node that reads a value, if only one does, once."""
    uses = list(value.uses())
    if len(uses) != 1 or value.is_graph_output():
        return None
    node = uses[0].node
    return node if node.domain in ("", "ai.onnx") else None
