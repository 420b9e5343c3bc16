"""Values whose batch, heads or groups of heads are other axes than before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

from nanoloom.graph.derived_constants import derived
from nanoloom.graph.editor import GraphEditor
from nanoloom.graph.layout_effects import is_tensor_op
from nanoloom.graph.types import shape_of
from nanoloom.weights.derivations import Reshaped


@dataclass
class HeadAxes(GraphEditor):
    """A graph whose products of heads get other axes."""

    def viewed(
        self, value: ir.Value, shape: Sequence[int], before: ir.Node
    ) -> ir.Value:
        """A value in another shape, without a useless node."""
        node = value.producer()
        if node is not None and is_tensor_op(node, {"Reshape"}):
            source = node.inputs[0]
            if source is not None and shape_of(source) == tuple(shape):
                return source
        if node is None and value.const_value is not None:
            made = ir.Value(
                name=f"{value.name}_{'_'.join(map(str, shape))}",
                shape=ir.Shape(shape),
                type=value.type,
                const_value=derived(value, Reshaped(tuple(shape))),
            )
            return self.registered(made)
        return self.reshaped(value, shape, before)

    def reshaped(
        self, value: ir.Value, shape: Sequence[int], before: ir.Node
    ) -> ir.Value:
        sizes = self.vector(list(shape), before)
        name = f"{before.name}/heads"
        return self.add(before, "Reshape", [value, sizes], [], shape, value, name)
