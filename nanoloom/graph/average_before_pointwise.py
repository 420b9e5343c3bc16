"""An image is averaged in front of a layer of 1x1 filters, not behind it.

    AveragePool(Conv(x, w, b))  ->  Conv(AveragePool(x), w, b)      w [F, C, 1, 1]

A filter of one tap adds up the channels of a pixel, an average the pixels of a channel:
their order changes nothing but roundings.  The transitions of DenseNet halve both sides
of an image behind such a layer: of four pixels three are not multiplied at all.  A bias
is its own average, where no window has places outside of the image.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import onnx_ir as ir

from nanoloom.graph.editor import GraphEditor
from nanoloom.graph.layout_effects import is_tensor_op
from nanoloom.graph.move_scalar_factors import size
from nanoloom.graph.types import is_static, shape_of

GLOBAL = "GlobalAveragePool"
AVERAGES = {"AveragePool", GLOBAL}


def average_before_pointwise(graph: ir.Graph) -> None:
    """Rewrite a graph with static shapes in place."""
    rewriting = Averages(graph)
    for node in graph:
        if is_tensor_op(node, AVERAGES):
            rewriting.visit(node)


@dataclass
class Averages(GraphEditor):
    """The graph being rewritten."""

    def visit(self, pool: ir.Node) -> None:
        """Swap a pool and the layer that it reads, if that is less to compute."""
        made, (averaged,) = pool.inputs[0], pool.outputs
        layer = None if made is None else only_layer(made)
        if made is None or layer is None or not is_within(pool):
            return
        image = layer.inputs[0]
        if image is None or not is_pointwise(layer, image, made):
            return
        if not is_static(averaged) or not is_less(layer, pool):
            return
        shape = (*shape_of(image)[:2], *shape_of(averaged)[2:])
        how, name = list(pool.attributes.values()), f"{pool.name}/first"
        few = self.add(layer, pool.op_type, [image], how, shape, image, name)
        layer.replace_input_with(0, few)
        made.shape = averaged.shape
        self.replace(pool, made)


def only_layer(made: ir.Value) -> ir.Node | None:
    """The convolution whose result, in f32, nobody but one node reads."""
    node = made.producer()
    if node is None or not is_tensor_op(node, {"Conv"}) or made.is_graph_output():
        return None
    alone = len(list(made.uses())) == 1 and made.dtype == ir.DataType.FLOAT
    return node if alone and is_static(made) else None


def is_pointwise(layer: ir.Node, image: ir.Value, made: ir.Value) -> bool:
    """Whether each pixel of a convolution's result is made of the same pixel alone.

    A border would make the result larger than the image.
    """
    filters = layer.inputs[1]
    if filters is None or not is_static(filters) or not is_static(image):
        return False
    single = set(shape_of(filters)[2:]) == {1} and set(numbers(layer, "strides")) <= {1}
    return single and shape_of(image)[2:] == shape_of(made)[2:]


def is_within(pool: ir.Node) -> bool:
    """Whether all places of a pool's windows are in the image."""
    how = pool.attributes.get("auto_pad")
    fitted = how is not None and how.as_string() not in ("NOTSET", "VALID")
    larger = any(numbers(pool, "pads")) or any(numbers(pool, "ceil_mode"))
    return not fitted and not larger


def is_less(layer: ir.Node, pool: ir.Node) -> bool:
    """Whether products are spared, and more than windows have further sums.

    Of an image of any size: samples of sizes are rewritten alike.
    """
    image, weights = layer.inputs[:2]
    assert image is not None and weights is not None, "asked of layers with filters"
    further = shape_of(image)[1] - shape_of(layer.outputs[0])[1]
    if pool.op_type == GLOBAL:
        return size(weights) > 2 * further  # of two pixels and more
    spared = (prod(numbers(pool, "strides")) - 1) * size(weights)
    return spared > prod(numbers(pool, "kernel_shape")) * further


def numbers(node: ir.Node, name: str) -> list[int]:
    """An attribute, as numbers; none where it is missing."""
    found = node.attributes.get(name)
    if found is None:
        return []
    alone = found.type == ir.AttributeType.INT
    return [found.as_int()] if alone else list(found.as_ints())
