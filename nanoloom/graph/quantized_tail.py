"""What follows a linear operation: numbers added along an axis, Relu, quantization."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from nanoloom.graph.quantization import (
    BYTES,
    Quantized,
    exact_array,
    only_user,
    quantization,
)
from nanoloom.graph.types import is_static, shape_of
from nanoloom.graph.value_origin import Origin


@dataclass(frozen=True)
class Tail:
    """What follows a product: constants added to its columns, Relu, quantization.

    last: the value that the whole pattern gives.
    """

    last: ir.Value
    offset: np.ndarray | None
    relu: bool = False
    target: Quantized | None = None


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
