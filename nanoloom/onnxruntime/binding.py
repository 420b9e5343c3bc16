"""Inputs and outputs that are bound to memory before a run."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from nanoloom.onnxruntime.values import CPU, OrtValue, require_cpu

if TYPE_CHECKING:
    from nanoloom.onnxruntime.session import InferenceSession


class IOBinding:
    """What a session reads and writes at its next runs."""

    def __init__(self, session: InferenceSession) -> None:
        self._session = session
        self.inputs: dict[str, Any] = {}
        self.places: dict[str, np.ndarray | None] = {}  # None: new at each run
        self.made: dict[str, Any] = {}

    def bind_cpu_input(self, name: str, array: Any) -> None:
        """Read an array."""
        self.require_input(name)
        self.inputs[name] = array

    def bind_ortvalue_input(self, name: str, value: OrtValue) -> None:
        """Read a value."""
        self.require_input(name)
        self.inputs[name] = value.numpy()

    def bind_input(
        self,
        name: str,
        device_type: str,
        device_id: int,
        element_type: Any,
        shape: Sequence[int],
        buffer_ptr: int,
    ) -> None:
        """Read memory at an address."""
        self.require_input(name)
        require_cpu(device_type, device_id)
        self.inputs[name] = array_at(buffer_ptr, shape, element_type)

    def bind_ortvalue_output(self, name: str, value: OrtValue) -> None:
        """Write to a value's memory."""
        self.places[name] = value.numpy()

    def bind_output(
        self,
        name: str,
        device_type: str = CPU,
        device_id: int = 0,
        element_type: Any = None,
        shape: Sequence[int] | None = None,
        buffer_ptr: int | None = None,
    ) -> None:
        """Give an output, in memory at an address or, without one, in new memory."""
        require_cpu(device_type, device_id)
        given = buffer_ptr is not None and shape is not None
        here = array_at(buffer_ptr or 0, shape or (), element_type) if given else None
        self.places[name] = here

    def require_input(self, name: str) -> None:
        """Raise RuntimeError for an input that the model does not have."""
        if all(x.name != name for x in self._session.get_inputs()):
            said = f"Failed to find NodeArg with name: {name} in the def list"
            raise RuntimeError(said)

    def run(self) -> None:
        """Run the session once.  Raises RuntimeError if no output is bound."""
        if not self.places:
            raise RuntimeError("At least one output should be requested.")
        into = {name: array for name, array in self.places.items() if array is not None}
        self.made = self._session.computed(self.inputs, list(self.places), into)

    def get_outputs(self) -> list[OrtValue]:
        """The outputs of the last run, in the order in which they were bound."""
        return [OrtValue(self.made[name]) for name in self.places]

    def copy_outputs_to_cpu(self) -> list[Any]:
        """The same as arrays."""
        return [self.made[name] for name in self.places]

    def clear_binding_inputs(self) -> None:
        self.inputs.clear()

    def clear_binding_outputs(self) -> None:
        self.places.clear()

    def synchronize_inputs(self) -> None:
        """Nothing to wait for on the CPU."""

    def synchronize_outputs(self) -> None:
        """Nothing to wait for on the CPU."""


def array_at(place: int, shape: Sequence[int], element_type: Any) -> np.ndarray:
    """An array over memory that its owner keeps."""
    dtype = np.dtype(element_type)
    count = int(np.prod(shape, dtype=np.int64))
    memory = (ctypes.c_char * (count * dtype.itemsize)).from_address(place)
    # What ctypes' arrays are is a buffer, which numpy's types do not know.
    given: Any = memory
    return np.frombuffer(given, dtype, count).reshape(tuple(shape))
