"""Channels last: the layout of images between the operators of a network.

    Conv(x)          ->  T'(nanoloom.Conv(T(x)))     T: NCHW to NHWC, T' back
    f(T'(x), c)      ->  T'(f(x, T(c)))              elementwise, constants turned now
    T(T'(x))         ->  x

Convolutions and pools work on [n, h, w, c], where vectors of channels are contiguous.
The transposes sink through everything that does not care about the order of dimensions
until they meet their inverse, so that a network is turned once at its input.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from nanoloom.graph.editor import GraphEditor, inverse, transpose_order
from nanoloom.graph.quantized import quantizes_alike
from nanoloom.graph.types import is_static, shape_of

DOMAIN = "nanoloom"
SPATIAL = {
    "Conv",
    "ConvTranspose",
    "MaxPool",
    "AveragePool",
    "LpPool",
    "GlobalAveragePool",
    "GlobalMaxPool",
    "GlobalLpPool",
}
ELEMENTWISE = {
    "Abs",
    "Add",
    "And",
    "Cast",
    "Ceil",
    "Celu",
    "Clip",
    "Div",
    "Elu",
    "Equal",
    "Erf",
    "Exp",
    "Floor",
    "Gelu",
    "Greater",
    "GreaterOrEqual",
    "HardSigmoid",
    "HardSwish",
    "Identity",
    "LeakyRelu",
    "Less",
    "LessOrEqual",
    "Log",
    "Max",
    "Min",
    "Mish",
    "Mul",
    "Neg",
    "Not",
    "Or",
    "Pow",
    "Reciprocal",
    "Relu",
    "Round",
    "Selu",
    "Sigmoid",
    "Sign",
    "Softplus",
    "Softsign",
    "Sqrt",
    "Sub",
    "Sum",
    "Swish",
    "Tanh",
    "ThresholdedRelu",
    "Where",
    "PRelu",
    "Dropout",
}
REDUCTIONS = {
    "ReduceMean",
    "ReduceSum",
    "ReduceMax",
    "ReduceMin",
    "ReduceProd",
    "ReduceL1",
    "ReduceL2",
    "ReduceSumSquare",
    "ReduceLogSum",
    "ReduceLogSumExp",
}


def channels_last(graph: ir.Graph) -> None:
    """Give a graph with static shapes the channels-last layout, in place."""
    rewriting = Layout(graph)
    for node in graph:  # new nodes go before the current one: seen once each
        rewriting.visit(node)


def is_tensor_op(node: ir.Node, names: set[str]) -> bool:
    return node.domain in ("", "ai.onnx") and node.op_type in names


def to_last(rank: int) -> list[int]:
    """NCHW -> NHWC."""
    return [0, *range(2, rank), 1]


def to_first(rank: int) -> list[int]:
    """NHWC -> NCHW."""
    return [0, rank - 1, *range(1, rank - 1)]


def is_computed(value: ir.Value | None) -> bool:
    """Whether a value is neither constant nor a single element."""
    if value is None or value.const_value is not None:
        return False
    return int(np.prod(shape_of(value), dtype=np.int64)) != 1


@dataclass
class Layout(GraphEditor):
    """The graph being rewritten."""

    def visit(self, node: ir.Node) -> None:
        if not all(is_static(v) for v in node.outputs if v.name):
            return
        if is_tensor_op(node, {"Transpose"}):
            self.compose(node)
        elif is_tensor_op(node, SPATIAL):
            self.make_spatial(node)
        elif is_tensor_op(node, ELEMENTWISE) or quantizes_alike(node):
            self.sink(node, lambda _: {})
        elif is_tensor_op(node, {"Concat"}):
            self.sink(node, lambda order: {"axis": self.axis(node, order)})
        elif is_tensor_op(node, REDUCTIONS):
            self.sink_reduction(node)
        elif is_tensor_op(node, {"Pad", "Resize"}):
            self.sink_with_vectors(node)

    # ---- rules -----------------------------------------------------------------------

    def compose(self, node: ir.Node) -> None:
        """T2(T1(x)) -> T(x), and nothing at all where they cancel."""
        order = transpose_order(node.outputs[0])
        source = node.inputs[0]
        if order is None or transpose_order(source) is None:
            return
        if node.outputs[0].is_graph_output():
            return
        assert source is not None
        made = self.transpose(source, order, node)
        ir.convenience.replace_all_uses_with(node.outputs[0], made)
        self.graph.remove(node, safe=True)

    def make_spatial(self, node: ir.Node) -> None:
        """Put a convolution or pool between two transposes."""
        data, out = node.inputs[0], node.outputs[0]
        if data is None or not is_static(data) or len(node.outputs) > 1:
            return
        rank = len(shape_of(data))
        if rank < 3 or len(shape_of(out)) != rank:
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
            DOMAIN,
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

    def sink(
        self, node: ir.Node, changed: Callable[[list[int]], dict[str, int]]
    ) -> None:
        """f(T(x), y) -> T(f(x, T^-1(y))), where f takes any order of dimensions."""
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
        self.rebuild(node, inputs, order, changed(back))

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

    def axis(self, node: ir.Node, back: list[int]) -> int:
        axis = node.attributes["axis"].as_int() % len(back)
        return inverse(back)[axis]

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
        if (
            node.op_type == "Pad"
            and len(node.inputs) > 3
            and node.inputs[3] is not None
        ):
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
        self.rebuild(node, inputs, order, {})
