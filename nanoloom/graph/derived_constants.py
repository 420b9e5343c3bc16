"""Constants of a graph that are made of others when they are written."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from nanoloom.weights.weight import Derivation, Source, Weight


class DerivedTensor(ir.LazyTensor):
    """A weight as a constant of the graph: nothing is computed before it is asked."""

    def __init__(self, weight: Weight, dtype: ir.DataType, name: str) -> None:
        super().__init__(
            lambda: ir.Tensor(weight.array()), dtype, ir.Shape(weight.shape), name=name
        )
        self.weight = weight


def weight_of(tensor: ir.TensorProtocol, name: str = "") -> Weight:
    """A constant of the graph as a weight.

    name: of the value that it is, where no weight stands behind it.
    """
    if isinstance(tensor, DerivedTensor):
        return tensor.weight
    shape, dtype = tuple(tensor.shape.numpy()), np.dtype(tensor.dtype.numpy())
    named = name or tensor.name or ""
    return Weight(
        Source(tensor, named, shape, dtype, lambda: np.asarray(tensor.numpy()))
    )


def derived(value: ir.Value, *changes: Derivation) -> DerivedTensor:
    """What is made of a value's constant."""
    tensor = value.const_value
    assert tensor is not None, f"{value.name} is no constant"
    weight = weight_of(tensor, value.name or "")
    for change in changes:
        weight = weight.then(change)
    return DerivedTensor(weight, tensor.dtype, weight.name)
