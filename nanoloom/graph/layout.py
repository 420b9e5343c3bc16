"""Channels last: the layout of images between the operators of a network.

    Conv(x)          ->  T'(nanoloom.Conv(T(x)))     T: NCHW to NHWC, T' back
    f(T'(x), c)      ->  T'(f(x, T(c)))              elementwise, constants turned now
    T(T'(x))         ->  x

Convolutions and pools work on [n, h, w, c], where vectors of channels are contiguous.
The transposes sink through what takes any order of dimensions until they meet their
inverse: a network is transposed once, at its input.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from nanoloom.graph.binary_products import DOMAIN as BINARY
from nanoloom.graph.editor import GraphEditor, inverse, transpose_order
from nanoloom.graph.image_layouts import by_channel, image_order, to_first, to_last
from nanoloom.graph.keep_nchw import stays_nchw
from nanoloom.graph.layout_effects import ONE_TO_ONE, SPATIAL, is_tensor_op
from nanoloom.graph.lookup_tables import maps_bytes
from nanoloom.graph.operator_families import REDUCTIONS
from nanoloom.graph.quantization import DOMAIN as INTEGER
from nanoloom.graph.quantization import quantizes_alike
from nanoloom.graph.reshape_products import meet_transposes
from nanoloom.graph.shared_decisions import turn_resized
from nanoloom.graph.taps_in_product import has_taps_in_product
from nanoloom.graph.types import is_computed, is_static, shape_of

DOMAIN = "nanoloom"
# Of integers and of bits
IMAGES = ("AveragePool", "BitConvolution", "Convolution", "GlobalAveragePool")


def channels_last(graph: ir.Graph, *, any_length: bool = False) -> None:
    """Give a graph with static shapes the channels-last layout, in place."""
    rewriting = Layout(graph, any_length)
    for node in graph:  # new nodes go before the current one: seen once each
        rewriting.visit(node)


@dataclass
class Layout(GraphEditor):
    """The graph being rewritten.  any_length: so are the vectors of the code for it."""

    any_length: bool

    def visit(self, node: ir.Node) -> None:
        if not all(is_static(v) for v in node.outputs if v.name):
            return
        if quantizes_alike(node) or maps_bytes(node):
            self.sink(node)
        elif node.domain in (INTEGER, BINARY) and node.op_type in IMAGES:
            self.make_spatial(node)
        elif (node.domain, node.op_type) == (BINARY, "Pack"):
            self.pack(node)
        elif is_tensor_op(node, RULES.keys()):
            RULES[node.op_type](self, node)

    # ---- rules -----------------------------------------------------------------------

    def compose(self, node: ir.Node) -> None:
        """T2(T1(x)) -> T(x), and nothing at all where they cancel."""
        order = transpose_order(node.outputs[0])
        source = node.inputs[0]
        known = transpose_order(source)
        if order is None or known is None:
            return
        assert source is not None
        if not node.outputs[0].is_graph_output():
            made = self.transpose(source, order, node)
            ir.convenience.replace_all_uses_with(node.outputs[0], made)
            self.graph.remove(node, safe=True)
        elif [known[d] for d in order] != sorted(order):  # a result is made by a node
            self.replace(node, self.transpose(source, order, node))

    def make_spatial(self, node: ir.Node) -> None:
        """Put a convolution or pool between two transposes."""
        data, out = node.inputs[0], node.outputs[0]
        if data is None or not is_static(data) or len(node.outputs) > 1:
            return
        rank = len(shape_of(data))
        if rank < 3 or len(shape_of(out)) != rank:
            return
        if (self.any_length and stays_nchw(node)) or has_taps_in_product(node):
            return
        turned = self.transpose(data, to_last(rank), node)
        shape = [shape_of(out)[d] for d in to_last(rank)]
        attributes = [*node.attributes.values(), ir.AttrInt64("channels_last", 1)]
        made = self.add(
            node,
            node.op_type,
            [turned, *node.inputs[1:]],
            attributes,
            shape,
            out,
            node.name or node.op_type,
            node.domain or DOMAIN,
        )
        self.replace(node, self.transpose(made, to_first(rank), node))

    def common_order(self, node: ir.Node) -> list[int] | None:
        """The permutation that the node's full-rank inputs come through."""
        out = shape_of(node.outputs[0])
        found: list[int] | None = None
        for value in node.inputs:
            order = transpose_order(value)
            if order is None:
                if is_computed(value):
                    return None  # it would have to be turned: nothing is gained
                continue
            if len(order) != len(out) or (found is not None and order != found):
                return None
            found = order
        return found

    def sink(self, node: ir.Node) -> None:
        """f(T(x), y) -> T(f(x, T^-1(y))), where f takes any order of dimensions.

        An axis that it names goes with its dimension.
        """
        order = self.common_order(node)
        if order is None or len([v for v in node.outputs if v.name]) != 1:
            return
        back, rank = inverse(order), len(order)
        inputs: list[ir.Value | None] = []
        for value in node.inputs:
            if value is None or not shape_of(value) or np.prod(shape_of(value)) == 1:
                inputs.append(value)
                continue
            shape = shape_of(value)
            if len(shape) < rank:
                value = self.raised(value, rank)
                if value is None:
                    return
            inputs.append(self.transpose(value, back, node))
        axis = node.attributes.get("axis")
        changed = {} if axis is None else {"axis": order[axis.as_int() % rank]}
        self.rebuild(node, inputs, order, changed)

    def pack(self, node: ir.Node) -> None:
        """Bits of an image's channels are where a convolution reads them."""
        x, out = node.inputs[0], node.outputs[0]
        rank = len(shape_of(out))
        if rank < 3 or transpose_order(x) is not None:
            self.sink(node)
            return
        order = to_first(rank)
        turned = self.transpose(x, inverse(order), node)  # type: ignore[arg-type] - an input that is there
        axis = order[node.attributes["axis"].as_int() % rank]
        self.rebuild(node, [turned], order, {"axis": axis})

    def rebuild(
        self,
        node: ir.Node,
        inputs: Sequence[ir.Value | None],
        order: list[int],
        changed: dict[str, int],
    ) -> None:
        """The node on turned inputs, and a transpose behind it."""
        out = node.outputs[0]
        shape = [shape_of(out)[d] for d in inverse(order)]
        attributes = [a for a in node.attributes.values() if a.name not in changed]
        attributes += [ir.AttrInt64(name, number) for name, number in changed.items()]
        made = self.add(
            node,
            node.op_type,
            inputs,
            attributes,
            shape,
            out,
            node.name or node.op_type,
            node.domain,
        )
        self.replace(node, self.transpose(made, order, node))

    def sink_reduction(self, node: ir.Node) -> None:
        """Reduce(T(x), axes) -> T(Reduce(x, T(axes))) with kept dimensions."""
        order = transpose_order(node.inputs[0])
        keep = node.attributes.get("keepdims")
        if order is None or (keep is not None and keep.as_int() == 0):
            return
        if len(node.inputs) > 1 and node.inputs[1] is not None:
            tensor = node.inputs[1].const_value
            if tensor is None or not tensor.size:
                return
            axes = [int(a) % len(order) for a in tensor.numpy().reshape(-1)]
            turned = self.vector([order[a] for a in axes], node)
            inputs = [self.transpose(node.inputs[0], inverse(order), node), turned]  # type: ignore[arg-type]
            self.rebuild(node, inputs, order, {})
            return
        given = node.attributes.get("axes")
        if given is None:
            return
        axes = [order[a % len(order)] for a in given.as_ints()]
        inputs = [self.transpose(node.inputs[0], inverse(order), node)]  # type: ignore[arg-type]
        node.attributes["axes"] = ir.AttrInt64s("axes", axes)
        self.rebuild(node, inputs, order, {})

    def sink_with_vectors(self, node: ir.Node) -> None:
        """Pad and Resize: one number a dimension in their other inputs."""
        order = transpose_order(node.inputs[0])
        if order is None or "axes" in node.attributes:
            return
        if node.op_type == "Pad" and any(x is not None for x in node.inputs[3:]):
            return
        rank, back = len(order), inverse(order)
        inputs: list[ir.Value | None] = [
            self.transpose(node.inputs[0], back, node)  # type: ignore[arg-type]
        ]
        for value in node.inputs[1:]:
            tensor = None if value is None else value.const_value
            if value is None or (tensor is not None and tensor.size in (0, 1)):
                inputs.append(value)
                continue
            if tensor is None or tensor.size not in (rank, 2 * rank):
                return
            numbers = tensor.numpy().reshape(-1, rank)[:, back].reshape(-1)
            inputs.append(
                self.vector(numbers.tolist(), node, str(tensor.numpy().dtype))
            )
        turn_resized(node, order)
        self.rebuild(node, inputs, order, {})

    def sink_channels(self, node: ir.Node) -> None:
        """BatchNormalization: its other inputs have an element a channel."""
        order = image_order(node.inputs[0]) if by_channel(node) else None
        trains = node.attributes.get("training_mode")
        if order is None or len(node.outputs) > 1 or (trains and trains.as_int()):
            return
        back = inverse(order)
        x = self.transpose(node.inputs[0], back, node)  # type: ignore[arg-type]
        made = self.add(
            node,
            node.op_type,
            [x, *node.inputs[1:]],
            [*node.attributes.values(), ir.AttrInt64("channels_last", 1)],
            [shape_of(node.outputs[0])[d] for d in back],
            node.outputs[0],
            node.name or node.op_type,
            DOMAIN,
        )
        self.replace(node, self.transpose(made, order, node))

    def sink_slice(self, node: ir.Node) -> None:
        """Slice of named dimensions, or of the first ones."""
        order = image_order(node.inputs[0])
        if order is None or len(node.inputs) < 3:
            return
        axes = node.inputs[3] if len(node.inputs) > 3 else None
        if axes is not None and axes.const_value is None:
            return
        x, starts, ends, *_ = node.inputs
        assert x is not None and starts is not None
        given = range(shape_of(starts)[0]) if axes is None else axes.const_value.numpy()  # type: ignore[union-attr]
        turned = self.vector([order[int(a) % len(order)] for a in given], node)
        inputs = [self.transpose(x, inverse(order), node), starts, ends, turned]
        self.rebuild(node, [*inputs, *node.inputs[4:]], order, {})

    def sink_split(self, node: ir.Node) -> None:
        """Split along one dimension, into parts that are all wanted."""
        order = image_order(node.inputs[0])
        if order is None or not all(out.name for out in node.outputs):
            return
        back, given = inverse(order), node.attributes.get("axis")
        axis = order[(0 if given is None else given.as_int()) % len(order)]
        attributes = [a for a in node.attributes.values() if a.name != "axis"]
        x = self.transpose(node.inputs[0], back, node)  # type: ignore[arg-type]
        made = ir.Node(
            node.domain,
            node.op_type,
            [x, *node.inputs[1:]],
            [*attributes, ir.AttrInt64("axis", axis)],
            num_outputs=len(node.outputs),
            version=node.version,
            name=node.name or node.op_type,
        )
        shapes = [([shape_of(out)[d] for d in back], out) for out in node.outputs]
        parts = self.added(made, node, shapes)
        self.replace(node, *(self.transpose(part, order, node) for part in parts))


RULES: dict[str, Callable[[Layout, ir.Node], None]] = {
    **dict.fromkeys(ONE_TO_ONE | {"Concat"}, Layout.sink),
    **dict.fromkeys(REDUCTIONS, Layout.sink_reduction),
    **dict.fromkeys(SPATIAL, Layout.make_spatial),
    "BatchNormalization": Layout.sink_channels,
    "Pad": Layout.sink_with_vectors,
    "Reshape": meet_transposes,
    "Resize": Layout.sink_with_vectors,
    "Slice": Layout.sink_slice,
    "Split": Layout.sink_split,
    "Transpose": Layout.compose,
}
