"""Element type and shape of a graph's values, as onnx asks for them and as we do."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
import onnx
import onnx_ir as ir

from nanoloom.errors import Unsupported
from nanoloom.graph.unique_names import bodies, nested

COMPUTED_TYPES = frozenset(
    ir.DataType[name]
    for name in (
        "BOOL", "INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32",
        "UINT64", "FLOAT16", "BFLOAT16", "FLOAT", "DOUBLE",
    )
)  # fmt: skip

FEW = 1024  # elements of an input that may decide about shapes


def is_static(value: ir.Value) -> bool:
    """Whether element type and every dimension are known."""
    return value.dtype is not None and static_shape(value) is not None


def static_shape(value: ir.Value) -> tuple[int, ...] | None:
    """The shape, if every dimension is known."""
    if value.shape is None:
        return None
    dims = value.shape.dims
    known = tuple([d for d in dims if isinstance(d, int)])
    return known if len(known) == len(dims) else None


def shape_of(value: ir.Value) -> tuple[int, ...]:
    """The static shape; ask `is_static` first."""
    require_tensor(value)
    assert value.shape is not None
    return tuple(int(d) for d in value.shape.dims)  # type: ignore[arg-type]


def size(value: ir.Value) -> int:
    """How many numbers a value of static shape has."""
    return prod(shape_of(value))


def is_computed(value: ir.Value | None) -> bool:
    """Whether a value is neither constant nor a single element."""
    if value is None or value.const_value is not None:
        return False
    return int(np.prod(shape_of(value), dtype=np.int64)) != 1


def require_tensor(value: ir.Value) -> None:
    """Refuse sequences and optionals, which are not tensors."""
    if value.type is not None and not isinstance(value.type, ir.TensorType):
        raise Unsupported(
            f"value {value.name} is not a tensor",
            hint="nanoloom has no sequences, optionals or sparse tensors",
        )


def type_proto(value: ir.Value) -> onnx.TypeProto | None:
    """What onnx's inference functions take; None for a value of unknown type."""
    if value.type is None:
        return None
    proto = ir.serde.serialize_type(value.type)
    if value.shape is not None and isinstance(value.type, ir.TensorType):
        ir.serde.serialize_shape_into(proto, value.shape)
    return proto


def merged(inferred: ir.Shape, hint: ir.Shape | None) -> ir.Shape:
    """An inferred shape; a hint that does not contradict it fills what it leaves open.

    Names in it stay unknown.
    """
    if hint is None or len(hint) != len(inferred) or inferred.is_static():
        return inferred
    pairs = list(zip(inferred, hint, strict=True))
    if any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in pairs):
        return inferred
    return ir.Shape([a if isinstance(a, int) else b for a, b in pairs])


def integer_sources(values: Sequence[ir.Value | None]) -> tuple[str, ...]:
    """Names of the model's inputs that may decide about shapes and reach these values.

    An input of a body depends on what comes in from outside (`meta["outer"]`).
    """
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
            waiting += [x for x in used_by(producer) if x is not None]
        elif "outer" in value.meta:
            node, index = value.meta["outer"]
            waiting += [x for x in (node.inputs[index],) if x is not None]
        elif value.is_graph_input() and may_decide_shapes(value):
            names[value.name or ""] = None
    return tuple(names)


def deciding_sources(value: ir.Value | None) -> tuple[str, ...]:
    """The same for a value that must be known: a model's input itself may be floats."""
    if value is not None and value.producer() is None and "outer" not in value.meta:
        few = is_static(value) and np.prod(shape_of(value), dtype=np.int64) <= FEW
        if few and value.is_graph_input():
            return (value.name or "",)
    return integer_sources([value])


def used_by(node: ir.Node) -> list[ir.Value | None]:
    """The inputs of a node and of the nodes of its bodies."""
    found = list(node.inputs)
    for body in bodies(node):
        for inner in nested(body):
            found += inner.inputs
    return found


def may_decide_shapes(value: ir.Value) -> bool:
    """Whether a value may decide about shapes: few integers or bools, or one number."""
    if value.const_value is not None or not is_static(value):
        return False
    count = int(np.prod(shape_of(value), dtype=np.int64))
    return count == 1 or (count <= FEW and numpy_dtype(value).kind in "iub")


def operator_name(node: ir.Node) -> str:
    """A node's operator as tables name it: `Conv`, or `ai.onnx.ml.Scaler`.

    The domains of ONNX and of nanoloom's own passes are not named.
    """
    own = node.domain in ("", "ai.onnx", "nanoloom")
    return node.op_type if own else f"{node.domain}.{node.op_type}"


def numpy_dtype(value: ir.Value) -> np.dtype:
    """The element type as numpy's, or a sentence saying that it is not computed on."""
    require_tensor(value)
    assert value.dtype is not None
    if value.dtype not in COMPUTED_TYPES:
        raise Unsupported(
            f"value {value.name} has element type {value.dtype.name}",
            hint="nanoloom computes on bool, integers of 8 to 64 bits, and floats of "
            "16 to 64 bits",
        )
    return np.dtype(value.dtype.numpy())
