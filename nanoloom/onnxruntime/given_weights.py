"""Weights that a client gives: from memory, from a folder, or at a call.

ONNX Runtime takes those of a model in bytes from the folder where the process is, and
others in their place by name.  A weight that the graph lists among its inputs is the
default of that input.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx

from nanoloom.errors import InputError
from nanoloom.frontend.files import WeightFiles

if TYPE_CHECKING:
    import onnx_ir as ir

FOLDER = "session.model_external_initializers_file_folder_path"
OVERRIDING = 4  # the first version of the format whose weights need not be inputs


@dataclass
class GivenWeights:
    """What stands in place of a model's own.

    arrays: by the weight's name.  files: contents by the name of an external file.
    """

    arrays: dict[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])
    files: dict[str, bytes] = field(default_factory=dict[str, bytes])

    def model(self, given: Any, folder: str | None) -> Any:
        """The model with them.  folder: of external files; None for the model's own.

        What has neither external data nor weights of the client's stays as it is.
        """
        is_bytes = isinstance(given, bytes)
        is_plain = not (self.arrays or self.files or folder)
        if is_plain and not (is_bytes and refers_to_files(given)):
            return given
        model, place = opened(given), folder or ("." if is_bytes else None)
        for graph in model.graphs():
            for value in graph.initializers.values():
                value.const_value = self.weight(value, place)
        unknown = {*self.arrays} - {*model.graph.initializers}
        if unknown:
            names = ", ".join(sorted(unknown))
            raise InputError(f"the model has no weight {names}", where="initializers")
        return model

    def weight(self, value: ir.Value, folder: str | None) -> Any:
        """The tensor that a value has from now on."""
        import onnx_ir as ir

        own, name = value.const_value, str(value.name)
        if (array := self.arrays.get(name)) is not None:
            require_alike(value, array)
            return ir.Tensor(array, dtype=value.dtype, name=name)
        if not isinstance(own, ir.ExternalTensor):
            return own
        location = os.fspath(own.location)
        if (content := self.files.get(location)) is not None:
            return of_bytes(own, content)
        if folder is None:
            return own
        WeightFiles(Path(folder)).resolve(location, f"weight {name}")
        span = own.offset, own.length, own.dtype
        return ir.ExternalTensor(
            location, *span, shape=own.shape, name=name, base_dir=folder
        )


def refers_to_files(content: bytes) -> bool:
    """Whether a weight of a model in bytes is elsewhere."""
    return b"external_data" in content or b"location" in content


def opened(given: Any) -> ir.Model:
    """A model with its weights where they are."""
    import onnx_ir as ir

    if not isinstance(given, bytes):
        return ir.load(given)
    return ir.from_proto(onnx.ModelProto.FromString(given))


def require_alike(value: ir.Value, array: np.ndarray) -> None:
    """InputError for another shape or element type than the weight's own."""
    import onnx_ir as ir

    own = value.const_value
    assert own is not None  # a weight's tensor
    shape, dtype = own.shape.numpy(), own.dtype
    if array.shape != shape or ir.DataType.from_numpy(array.dtype) != dtype:
        raise InputError(
            f"is {dtype.name} {list(shape)}, what is given for it"
            f" {array.dtype.name} {list(array.shape)}",
            where=f"weight {value.name}",
        )


def of_bytes(own: ir.ExternalTensor, content: bytes) -> ir.TensorProtoTensor:
    """A tensor whose file is in memory."""
    import onnx_ir as ir

    start = own.offset or 0
    end = len(content) if own.length is None else start + own.length
    if end > len(content):
        raise InputError(
            f"needs bytes {start} to {end} of a file of {len(content)}",
            where=f"weight {own.name}",
        )
    proto = onnx.TensorProto(name=own.name, raw_data=bytes(content[start:end]))
    proto.data_type, dims = int(own.dtype), own.shape.numpy()
    proto.dims.extend(dims)
    return ir.TensorProtoTensor(proto)


def defaults(given: Any) -> dict[str, tuple[tuple[int, ...], np.dtype[Any]]]:
    """Shape and element type of weights that a call may give, by name."""
    import onnx_ir as ir

    model = given if isinstance(given, ir.Model) else opened(given)
    if (model.ir_version or 0) < OVERRIDING:
        return {}
    weights = model.graph.initializers
    found = [(str(x.name), weights[str(x.name)].const_value) for x in inputs_of(model)]
    return {
        name: (tuple(weight.shape.numpy()), weight.dtype.numpy())
        for name, weight in found
        if weight is not None
    }


def inputs_of(model: ir.Model) -> list[ir.Value]:
    """Inputs that have a weight as their default."""
    return [x for x in model.graph.inputs if x.name in model.graph.initializers]


def without(given: Any, names: Collection[str]) -> ir.Model:
    """The model with these weights as inputs."""
    import onnx_ir as ir

    model = given.clone() if isinstance(given, ir.Model) else opened(given)
    weights: Mapping[str, ir.Value] = model.graph.initializers
    for name in names:
        value = weights[name]
        own, value.const_value = value.const_value, None
        assert own is not None  # `defaults` has seen it
        value.shape, value.type = own.shape, ir.TensorType(own.dtype)
        del model.graph.initializers[name]
    return model
