"""Arrays as ONNX Runtime holds them: `OrtValue`, in this machine's memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nanoloom.onnxruntime.described import tensor_kind
from nanoloom.onnxruntime.errors import InvalidArgument, Unavailable

CPU = "cpu"


class OrtValue:
    """A tensor, or a list of tensors.  It refers to the array that it is made of."""

    def __init__(self, value: Any) -> None:
        self._value = value

    @staticmethod
    def ortvalue_from_numpy(
        array: np.ndarray, device_type: str = CPU, device_id: int = 0
    ) -> OrtValue:
        """A value that is an array."""
        require_cpu(device_type, device_id)
        return OrtValue(np.asarray(array))

    @staticmethod
    def ortvalue_from_shape_and_type(
        shape: Sequence[int],
        element_type: Any,
        device_type: str = CPU,
        device_id: int = 0,
    ) -> OrtValue:
        """Memory for a tensor; element_type: numpy's, or ONNX's number of it."""
        require_cpu(device_type, device_id)
        return OrtValue(np.empty(tuple(shape), dtype_of(element_type)))

    @staticmethod
    def ortvalue_from_numpy_with_onnx_type(
        data: np.ndarray, onnx_element_type: int
    ) -> OrtValue:
        """An array whose bytes are of another element type of the same size."""
        return OrtValue(data.view(dtype_of(onnx_element_type)))

    def numpy(self) -> Any:
        """The array, or the list of arrays."""
        return self._value

    def shape(self) -> list[int]:
        return list(self._value.shape)

    def element_type(self) -> int:
        """ONNX's number of the element type."""
        import onnx

        return onnx.helper.np_dtype_to_tensor_dtype(self._value.dtype)

    def data_type(self) -> str:
        if self.is_tensor_sequence():
            return f"seq({tensor_kind(self._value[0].dtype)})"
        return tensor_kind(self._value.dtype)

    def data_ptr(self) -> int:
        return self._value.ctypes.data

    def device_name(self) -> str:
        return CPU

    def has_value(self) -> bool:
        return self._value is not None

    def is_tensor(self) -> bool:
        return isinstance(self._value, np.ndarray)

    def is_tensor_sequence(self) -> bool:
        return isinstance(self._value, list)

    def is_sparse_tensor(self) -> bool:
        return False

    def tensor_size_in_bytes(self) -> int:
        return self._value.nbytes

    def update_inplace(self, array: np.ndarray) -> None:
        """Write another array's numbers where these are."""
        if array.shape != self._value.shape or array.dtype != self._value.dtype:
            kinds = [f"{x.dtype.name} {x.shape}" for x in (self._value, array)]
            raise InvalidArgument(f"the value is {kinds[0]}, the array {kinds[1]}")
        self._value[...] = array

    def __dlpack__(self, **words: Any) -> Any:
        return self._value.__dlpack__(**words)

    def __dlpack_device__(self) -> Any:
        return self._value.__dlpack_device__()


def dtype_of(element_type: Any) -> np.dtype[Any]:
    """numpy's element type; that of ONNX's number, too."""
    import onnx

    if isinstance(element_type, int):
        return onnx.helper.tensor_dtype_to_np_dtype(element_type)
    return np.dtype(element_type)


class OrtDevice:
    """Where memory is: on the CPU."""

    def __init__(self, device_type: str = CPU, device_id: int = 0) -> None:
        require_cpu(device_type, device_id)

    @staticmethod
    def make(device_type: str, device_id: int = 0) -> OrtDevice:
        return OrtDevice(device_type, device_id)

    def device_type(self) -> str:
        return CPU

    def device_id(self) -> int:
        return 0


def require_cpu(device_type: str, device_id: int) -> None:
    """Raise NotImplemented for another device."""
    if str(device_type).lower() != CPU or device_id:
        raise Unavailable(f"there is no device {device_type}:{device_id}, only the CPU")
