"""Every tensor of a model: its type, shape and data agree, its data can be reached."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import onnx
import onnx_ir as ir

from nanoloom.errors import ModelError, Unsupported
from nanoloom.frontend.files import WeightFiles
from nanoloom.frontend.mapped_tensors import MappedTensor
from nanoloom.frontend.memory_claims import byte_size
from nanoloom.frontend.proto_walk import tensors

T = ir.DataType
AGAIN = "fetch or export the model again"

# Where a TensorProto keeps the elements of a type, and how many entries a number of
# elements takes there (onnx.proto, TensorProto).
ENTRIES: dict[str, dict[ir.DataType, tuple[int, int]]] = {
    "float_data": {T.FLOAT: (1, 1), T.COMPLEX64: (2, 1)},
    "double_data": {T.DOUBLE: (1, 1), T.COMPLEX128: (2, 1)},
    "int64_data": {T.INT64: (1, 1)},
    "uint64_data": {T.UINT32: (1, 1), T.UINT64: (1, 1)},
    "string_data": {T.STRING: (1, 1)},
    "int32_data": {
        **dict.fromkeys((T.INT32, T.INT16, T.INT8, T.UINT16, T.UINT8, T.BOOL), (1, 1)),
        **dict.fromkeys((T.FLOAT16, T.BFLOAT16), (1, 1)),
        **dict.fromkeys((T.FLOAT8E4M3FN, T.FLOAT8E4M3FNUZ), (1, 1)),
        **dict.fromkeys((T.FLOAT8E5M2, T.FLOAT8E5M2FNUZ, T.FLOAT8E8M0), (1, 1)),
        **dict.fromkeys((T.INT4, T.UINT4, T.FLOAT4E2M1), (1, 2)),
        **dict.fromkeys((T.INT2, T.UINT2), (1, 4)),
    },
}
FIELD_OF = {t: name for name, types in ENTRIES.items() for t in types}
DATA_FIELDS = (*ENTRIES, "raw_data")


@dataclass
class Weights:
    """Tensors held outside of the proto, in the order of the references to them.

    given: tensors that already exist (a model given as IR); else files are mapped.
    """

    files: WeightFiles
    found: list[ir.TensorProtocol] = field(default_factory=list[ir.TensorProtocol])
    given: list[ir.TensorProtocol] | None = None


def check_tensors(model: onnx.ModelProto, weights: Weights, where: str) -> None:
    """Check all tensors; those with external data end up in `weights.found`.

    Their protos then refer to the list: location "", the index as the offset.
    Raises ModelError for data that is missing or does not fit type and shape.
    """
    for tensor, at in tensors(model, where):
        outside = checked_tensor(tensor, weights, at)
        if outside is not None:
            weights.found.append(outside)
            refer(tensor, len(weights.found) - 1)


def checked_tensor(
    tensor: onnx.TensorProto, weights: Weights, where: str
) -> ir.TensorProtocol | None:
    """What holds a tensor outside of its proto, None for one whose data are in it.

    Raises ModelError for data that is missing or does not fit type and shape.
    """
    count = check_type(tensor, where)
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        return external(tensor, weights, where)
    if tensor.HasField("raw_data"):
        check_raw(tensor, where)
    else:
        check_entries(tensor, count, where)
    return None


def check_type(tensor: onnx.TensorProto, where: str) -> int:
    """The number of elements of a tensor of a known type and possible shape."""
    if tensor.data_type in (T.FLOAT6E2M3, T.FLOAT6E3M2):
        raise Unsupported(
            f"element type {T(tensor.data_type).name} has no arithmetic",
            where=where,
            hint="convert the weight to float8, float16 or float32",
        )
    if tensor.data_type not in FIELD_OF:
        raise ModelError(
            f"has no element type that ONNX knows (number {tensor.data_type})",
            where=where,
            hint=AGAIN,
        )
    if any(d < 0 for d in tensor.dims):
        raise ModelError(
            f"has a negative dimension in its shape {list(tensor.dims)}",
            where=where,
            hint=AGAIN,
        )
    if tensor.HasField("segment"):
        raise ModelError("is stored in segments", where=where, hint=AGAIN)
    return math.prod(tensor.dims)


def check_raw(tensor: onnx.TensorProto, where: str) -> None:
    others = filled(tensor)[:-1]
    if others:
        raise ModelError(f"has raw_data and {others[0]}", where=where, hint=AGAIN)
    if tensor.data_type == T.STRING:
        raise ModelError("has strings as raw_data", where=where, hint=AGAIN)
    check_length(tensor, len(tensor.raw_data), where)


def check_length(tensor: onnx.TensorProto, length: int, where: str) -> None:
    dtype = T(tensor.data_type)
    need = byte_size(tensor.dims, dtype)
    if length != need:
        raise ModelError(
            f"has {length} bytes of data and its shape {list(tensor.dims)} of"
            f" {dtype.name} needs {need}",
            where=where,
            hint=AGAIN,
        )


def check_entries(tensor: onnx.TensorProto, count: int, where: str) -> None:
    """Data in a typed field: the right one, of the right length."""
    dtype = T(tensor.data_type)
    name = FIELD_OF[dtype]
    wrong = [other for other in filled(tensor) if other != name]
    if wrong:
        raise ModelError(
            f"of type {dtype.name} has its data in {wrong[0]} instead of {name}",
            where=where,
            hint=AGAIN,
        )
    times, per_entry = ENTRIES[name][dtype]
    need = (count * times + per_entry - 1) // per_entry
    if len(getattr(tensor, name)) != need:
        raise ModelError(
            f"has {len(getattr(tensor, name))} entries of data and its shape"
            f" {list(tensor.dims)} of {dtype.name} needs {need}",
            where=where,
            hint=AGAIN,
        )


def filled(tensor: onnx.TensorProto) -> list[str]:
    """The data fields that hold something; raw_data is the last."""
    return [
        name
        for name in DATA_FIELDS
        if (tensor.HasField(name) if name == "raw_data" else len(getattr(tensor, name)))
    ]


def external(
    tensor: onnx.TensorProto, weights: Weights, where: str
) -> ir.TensorProtocol:
    """The tensor that an external-data reference stands for, mapped but not read."""
    present = filled(tensor)
    if present:
        raise ModelError(
            f"has its data in another file and in {present[0]}", where=where, hint=AGAIN
        )
    dtype = T(tensor.data_type)
    if dtype == T.STRING:
        raise ModelError("has strings as external data", where=where, hint=AGAIN)
    facts = {entry.key: entry.value for entry in tensor.external_data}
    offset = number(facts.get("offset", "0"), "offset", where)
    if weights.given is not None:
        return weights.given[offset]
    need = byte_size(tensor.dims, dtype)
    if "length" in facts:
        check_length(tensor, number(facts["length"], "length", where), where)
    region = weights.files.region(facts.get("location", ""), offset, need, where)
    return MappedTensor(
        tensor.name,
        dtype,
        tuple(tensor.dims),
        region,
        doc_string=tensor.doc_string or None,
        metadata_props={e.key: e.value for e in tensor.metadata_props},
    )


def number(text: str, what: str, where: str) -> int:
    """A non-negative decimal number of at most 19 digits, as int64 has."""
    if not (text.isascii() and text.isdigit() and len(text) <= 19):
        raise ModelError(
            f"has external data with the {what} {text!r}, not a number of bytes",
            where=where,
            hint=AGAIN,
        )
    return int(text)


def refer(tensor: onnx.TensorProto, index: int) -> None:
    """Make a proto's external data say where in the list of weights its tensor is."""
    del tensor.external_data[:]
    for key, value in (("location", ""), ("offset", str(index))):
        tensor.external_data.add(key=key, value=value)
