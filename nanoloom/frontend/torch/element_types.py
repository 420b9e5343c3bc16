"""Element types of torch as those of ONNX, and torch's tensors as numpy's arrays."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir as ir
import torch
from torch._C._functorch import is_functorch_wrapped_tensor
from torch._subclasses.fake_tensor import FakeTensor

from nanoloom.errors import Unsupported

Array = np.ndarray[Any, np.dtype[Any]]
T = ir.DataType
ELEMENT_TYPES = {
    torch.float32: T.FLOAT,
    torch.float64: T.DOUBLE,
    torch.float16: T.FLOAT16,
    torch.bfloat16: T.BFLOAT16,
    torch.int8: T.INT8,
    torch.int16: T.INT16,
    torch.int32: T.INT32,
    torch.int64: T.INT64,
    torch.uint8: T.UINT8,
    torch.uint16: T.UINT16,
    torch.uint32: T.UINT32,
    torch.uint64: T.UINT64,
    torch.bool: T.BOOL,
    torch.float8_e4m3fn: T.FLOAT8E4M3FN,
    torch.float8_e5m2: T.FLOAT8E5M2,
}
# numpy has these from ml_dtypes, and torch hands them over as their bits.
BITS = {
    torch.bfloat16: (torch.uint16, np.dtype(ml_dtypes.bfloat16)),
    torch.float8_e4m3fn: (torch.uint8, np.dtype(ml_dtypes.float8_e4m3fn)),
    torch.float8_e5m2: (torch.uint8, np.dtype(ml_dtypes.float8_e5m2)),
}
OF_NUMPY = {made: (bits, dtype) for dtype, (bits, made) in BITS.items()}


def element_type(dtype: torch.dtype, where: str) -> ir.DataType:
    """Raises Unsupported for types that ONNX has no numbers of (complex, quantized)."""
    if dtype not in ELEMENT_TYPES:
        name = str(dtype).removeprefix("torch.")
        raise Unsupported(
            f"has elements of type {name}",
            where=where,
            hint="convert it to floats, integers or bool in the module",
        )
    return ELEMENT_TYPES[dtype]


def has_numbers(tensor: torch.Tensor) -> bool:
    """Whether it lies in this machine's memory, which tensors of a trace do not."""
    plain = tensor.layout == torch.strided and tensor.device.type == "cpu"
    return plain and not is_traced(tensor)


def is_traced(tensor: torch.Tensor) -> bool:
    """Whether it stands in a trace, or a transform (vjp, vmap), for another tensor."""
    return isinstance(tensor, FakeTensor) or is_functorch_wrapped_tensor(tensor)


def numpy_view(tensor: torch.Tensor, where: str) -> Array:
    """The tensor's own memory as an array, with its strides; nothing is copied.

    Raises Unsupported for a tensor that is not in this machine's memory.
    """
    if is_traced(tensor):
        raise Unsupported(
            "stands in a trace of torch for a tensor, and has no numbers",
            where=where,
            hint="load the weights before the export; what transforms (vjp, grad) "
            'give runs in torch.compile(module, backend="nanoloom")',
        )
    if not has_numbers(tensor) or tensor.is_quantized:
        kind = str(tensor.layout).removeprefix("torch.")
        raise Unsupported(
            f"is a {kind} tensor on {tensor.device.type}",
            where=where,
            hint='give a dense one on the CPU: module.to("cpu")',
        )
    plain = tensor.detach().resolve_conj().resolve_neg()
    if plain.dtype in BITS:
        bits, made = BITS[plain.dtype]
        return plain.view(bits).numpy().view(made)
    return plain.numpy()


def torch_view(array: Array) -> torch.Tensor:
    """An array's memory as a tensor; nothing is copied."""
    if array.dtype in OF_NUMPY:
        bits, dtype = OF_NUMPY[array.dtype]
        plain = array.view(np.uint16 if bits == torch.uint16 else np.uint8)
        return torch.from_numpy(plain).view(dtype)
    return torch.from_numpy(array)
