"""Element type and shape of a graph's values, as onnx asks for them and as we do."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import onnx_ir as ir

from nanoloom.errors import Unsupported


def is_static(value: ir.Value) -> bool:
    """Whether element type and every dimension are known."""
    shape = value.shape
    return (
        value.dtype is not None
        and shape is not None
        and all(isinstance(d, int) for d in shape)
    )


def shape_of(value: ir.Value) -> tuple[int, ...]:
    """The static shape; ask `is_static` first."""
    assert value.shape is not None
    return tuple(int(d) for d in value.shape.dims)  # type: ignore[arg-type]


def type_proto(value: ir.Value) -> onnx.TypeProto | None:
    """What onnx's inference functions take; None for a value of unknown type."""
    if value.type is None:
        return None
    proto = ir.serde.serialize_type(value.type)
    if value.shape is not None and isinstance(value.type, ir.TensorType):
        ir.serde.serialize_shape_into(proto, value.shape)
    return proto


def set_type(value: ir.Value, proto: onnx.TypeProto) -> None:
    """Take over what onnx inferred (its symbolic dimensions stay unknown)."""
    made = ir.serde.deserialize_type_proto_for_type(proto)
    if made is not None:
        value.type = made
    if value.shape is None or not is_static(value):
        shape = ir.serde.deserialize_type_proto_for_shape(proto)
        if shape is not None:
            value.shape = shape


def integer_sources(values: Sequence[ir.Value | None]) -> tuple[str, ...]:
    """Names of the small integer or bool graph inputs that these values depend on."""
    names: dict[str, None] = {}
    seen: set[ir.Value] = set()
    waiting = [value for value in values if value is not None]
    while waiting:
        value = waiting.pop()
        if value in seen:
            continue
        seen.add(value)
        producer = value.producer()
        if producer is not None:
            waiting += [x for x in producer.inputs if x is not None]
        elif value.is_graph_input() and is_small_integer(value):
            names[value.name or ""] = None
    return tuple(names)


def is_small_integer(value: ir.Value) -> bool:
    """Whether a value may carry a shape: few elements, integer or bool."""
    if value.const_value is not None or not is_static(value):
        return False
    few = int(np.prod(shape_of(value), dtype=np.int64)) <= 1024
    return few and numpy_dtype(value).kind in "iub"


def numpy_dtype(value: ir.Value) -> np.dtype:
    """The element type as numpy's, or a sentence saying that it has none."""
    assert value.dtype is not None
    try:
        return np.dtype(value.dtype.numpy())
    except TypeError:
        raise Unsupported(
            f"value {value.name} has element type {value.dtype.name}",
            hint="nanoloom computes on numbers and bool",
        ) from None
