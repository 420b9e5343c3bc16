"""A model taken apart into its graph and its large weights, and put together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import onnx
import onnx_ir as ir

from nanoloom.errors import ModelError
from nanoloom.frontend.files import WeightFiles
from nanoloom.frontend.mapped_tensors import MappedTensor
from nanoloom.frontend.memory_claims import byte_size
from nanoloom.frontend.wire import THRESHOLD

Tensor = ir.TensorProtocol
LONGEST = 160  # characters of another library's message


def separate(model: ir.Model, where: str) -> tuple[onnx.ModelProto, list[Tensor]]:
    """A proto of the model in which large tensors are references to a list.

    Raises ModelError for a model that is not whole (values without names, nodes out
    of order) and for external weights that cannot be mapped.
    """
    tensors: list[Tensor] = []
    try:
        copy = model.clone()
        replace_tensors(copy, lambda tensor: stub(tensor, tensors, where))
        return ir.to_proto(copy), tensors
    except (ir.serde.SerdeError, RuntimeError, ValueError, TypeError) as error:
        raise ModelError(
            f"is not a whole model: {root_cause(error)}",
            where=where,
            hint="save it as a file to see whether it is valid",
        ) from None


def fill(model: ir.Model, tensors: Sequence[Tensor]) -> None:
    """Put the tensors in the place of the references to them, in place."""

    def lookup(tensor: Tensor) -> Tensor:
        if not isinstance(tensor, ir.ExternalTensor):
            return tensor
        found = tensors[tensor.offset or 0]
        found.name = tensor.name
        return found

    replace_tensors(model, lookup)


def replace_tensors(model: ir.Model, change: Callable[[Tensor], Tensor]) -> None:
    """Exchange weights and tensor attributes everywhere, functions included."""
    for graph in model.graphs():
        for value in graph.initializers.values():
            if value.const_value is None:
                raise ValueError(f"weight {value.name} has no data")
            value.const_value = change(value.const_value)
        for node in graph:
            for attribute in list(node.attributes.values()):
                node.attributes[attribute.name] = changed(attribute, change)
    for function in model.functions.values():
        for attribute in list(function.attributes.values()):
            function.attributes[attribute.name] = changed(attribute, change)


def changed(attribute: ir.Attr, change: Callable[[Tensor], Tensor]) -> ir.Attr:
    if attribute.is_ref() or attribute.value is None:
        return attribute
    name, doc = attribute.name, attribute.doc_string
    if attribute.type == ir.AttributeType.TENSOR:
        return ir.AttrTensor(name, change(attribute.value), doc_string=doc)
    if attribute.type == ir.AttributeType.TENSORS:
        tensors = [change(tensor) for tensor in attribute.as_tensors()]
        return ir.AttrTensors(name, tensors, doc_string=doc)
    return attribute


def stub(tensor: Tensor, tensors: list[Tensor], where: str) -> Tensor:
    """A reference to a large or external tensor, which moves to the list."""
    if isinstance(tensor, ir.ExternalTensor):
        tensor = mapped(tensor, where)
    elif tensor.dtype == ir.DataType.STRING or tensor.nbytes <= THRESHOLD:
        return tensor
    tensors.append(tensor)
    return ir.ExternalTensor(
        "",
        offset=len(tensors) - 1,
        length=None,
        dtype=tensor.dtype,
        shape=ir.Shape(tensor.shape.numpy()),
        name=tensor.name or "",
    )


def mapped(tensor: ir.ExternalTensor, where: str) -> MappedTensor:
    """An external tensor as one of ours, its file checked and mapped."""
    folder, location = Path(tensor.base_dir), str(tensor.location)
    if tensor.base_dir == "":  # onnx_ir's word for a path that the caller vouches for
        folder, location = Path(location).parent, Path(location).name
    shape = tensor.shape.numpy()
    need = byte_size(shape, tensor.dtype)
    at = f"{where}: weight {tensor.name}"
    files = WeightFiles(folder)
    region = files.region(location, tensor.offset or 0, need, at)
    return MappedTensor(tensor.name, tensor.dtype, tuple(shape), region)


def root_cause(error: BaseException) -> str:
    """The first line of what made another library raise."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = str(error).splitlines()
    return lines[0][:LONGEST] if lines else type(error).__name__
