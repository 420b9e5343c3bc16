"""A name for the content of a model that is in no file."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from nanoloom.cache.digest import of, of_buffer


def content_digest(given: object) -> str:
    """Of bytes, or of an object; large weights are read where they are."""
    import onnx

    if isinstance(given, bytes):
        return of("bytes", given)
    from nanoloom.frontend.onnx import open_source

    opened = open_source(given)  # type: ignore[arg-type]
    weights = [*opened.weights.found, *(opened.weights.given or ())]
    content = [of_tensor(tensor) for tensor in weights]
    if isinstance(given, onnx.ModelProto):
        whole = given.SerializeToString()
    else:
        whole = opened.proto.SerializeToString()
    return of("proto", whole, *content)


def of_tensor(tensor: ir.TensorProtocol) -> str:
    """Of a tensor's bytes, copied only where they are not side by side."""
    if tensor.dtype.bitwidth < 8 or tensor.dtype == ir.DataType.STRING:
        return of(tensor.tobytes())
    array = np.ascontiguousarray(tensor.numpy())
    return of_buffer(array.reshape(-1).view(np.uint8).data)
