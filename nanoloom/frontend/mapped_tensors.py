"""Tensors that stay in their file: read page by page, given back after use."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from nanoloom.frontend.wire import Buffer, drop_pages


@dataclass(frozen=True, eq=False)
class Region:
    """A span of a mapped file (or of bytes in memory) that holds one tensor's data."""

    buffer: Buffer
    offset: int
    length: int

    def bytes_view(self) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """The span as read-only uint8 (length,), not copied."""
        if self.length == 0:
            return np.empty(0, np.uint8)
        return np.frombuffer(self.buffer, np.uint8, self.length, self.offset)

    def release(self) -> None:
        """Give the pages back to the system; the next access reads the file again."""
        drop_pages(self.buffer, self.offset, self.offset + self.length)

    def __array__(
        self, dtype: Any = None, copy: bool | None = None
    ) -> np.ndarray[Any, Any]:
        return np.array(self.bytes_view(), dtype=dtype, copy=copy)


class MappedTensor(ir.Tensor):
    """A read-only tensor on a `Region`; nothing is read before `numpy()` is used.

    The data starts anywhere in a file, so `numpy()` may be unaligned for its dtype
    (`array.flags.aligned`): numpy copes, a kernel wants `np.require(..., "A")` or a
    packed copy.  Types of less than a byte are unpacked to a new array at each call.
    """

    def __init__(
        self,
        name: str,
        dtype: ir.DataType,
        shape: tuple[int, ...],
        region: Region,
        *,
        doc_string: str | None = None,
        metadata_props: dict[str, str] | None = None,
    ) -> None:
        super().__init__(
            region,
            dtype,
            shape=ir.Shape(shape),
            name=name,
            doc_string=doc_string,
            metadata_props=metadata_props,
        )
        self.region = region

    def numpy(self) -> np.ndarray[Any, Any]:
        """The values, in the tensor's shape and dtype, little-endian and read-only."""
        packed = self.region.bytes_view()
        if self.dtype.bitwidth < 8:
            return ir.PackedTensor(packed, self.dtype, shape=self.shape).numpy()
        dtype = np.dtype(self.dtype.numpy()).newbyteorder("<")
        return packed.view(dtype).reshape(self.shape.numpy())

    def tobytes(self) -> bytes:
        return self.region.bytes_view().tobytes()

    def release(self) -> None:
        """Drop the pages of the file that were touched; arrays stay valid."""
        self.region.release()

    def __array__(
        self, dtype: Any = None, copy: bool | None = None
    ) -> np.ndarray[Any, Any]:
        return np.array(self.numpy(), dtype=dtype, copy=copy)

    def __dlpack__(self, *, stream: Any = None) -> Any:
        return self.numpy().copy().__dlpack__()  # numpy exports no read-only array

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)  # kDLCPU

    def __repr__(self) -> str:
        return f"{self._repr_base()}(name={self.name!r}, offset={self.region.offset})"


def release(tensor: ir.TensorProtocol | None) -> None:
    """Give back the memory that reading a mapped weight took (no-op for others)."""
    if isinstance(tensor, MappedTensor):
        tensor.release()


def regions_of(tensors: Iterable[MappedTensor]) -> list[Region]:
    """One region a file, from the first of its tensors to the end of the last."""
    found: dict[int, list[Region]] = {}
    for tensor in tensors:
        found.setdefault(id(tensor.region.buffer), []).append(tensor.region)
    made: list[Region] = []
    for parts in found.values():
        start = min(part.offset for part in parts)
        end = max(part.offset + part.length for part in parts)
        made.append(Region(parts[0].buffer, start, end - start))
    return made
