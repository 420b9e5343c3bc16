"""Which Reshapes pass operations: those between products and what stands around them.

    MatMul(q, Reshape(Expand(k)))       what groups of heads share is read once
    MatMul(Reshape<[b h, m, n]>(p), v)  so are products of a batch and its heads,
    Reshape<[b, h, m, n]>(f(x, y))      and what follows them
    f(Reshape(x), c)                    what follows a product is of its shape
    Reshape(Transpose(x))               one transpose meets another

The two products of an attention are neighbours so, a kernel takes what follows them,
and nothing that heads or texts of a batch repeat is multiplied more than once.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from nanoloom.graph.axis_groups import regroup_axes
from nanoloom.graph.editor import GraphEditor, transpose_order
from nanoloom.graph.layout_effects import ONE_TO_ONE, is_tensor_op
from nanoloom.graph.pass_reshapes import PassReshapes, mixed_axes, operand_shapes
from nanoloom.graph.patterns.pattern import Found, Pattern
from nanoloom.graph.patterns.rules import Rule, apply_rules
from nanoloom.graph.quantization import only_user
from nanoloom.graph.types import is_computed, is_static, shape_of

PRODUCTS = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})


def pass_reshapes(graph: ir.Graph, *rules: Rule[PassReshapes]) -> None:
    """Rewrite a graph with static shapes in place."""
    apply_rules(PassReshapes(graph), rules)


def share_heads(graph: PassReshapes, node: ir.Node, found: Found) -> bool:
    """Multiply by what heads share, if a product's right operand repeats it.

    For one row, the next token of a text, to which what is repeated would be most of
    the work.  Many rows share it, and their two products are one kernel for heads only.
    """
    few, shape = shape_of(found["k"]), shape_of(node.outputs[0])
    if len(few) != 5 or few[2] != 1 or len(shape) != 4 or shape[2] != 1:
        return False
    batch, groups, *_ = few
    if shape[0] != batch or shape[1] % max(groups, 1):
        return False
    split = (batch, groups, shape[1] // groups)
    joined = graph.sink(node, (*split, *shape[2:]), hoisted={1})
    while joined is not None and (after := follower(joined)) is not None:
        joined = graph.sink(after, (*split, *shape_of(after.outputs[0])[2:]))
    return True


def follower(value: ir.Value) -> ir.Node | None:
    """What goes over a value's rows, if nothing else reads it and its shape stays."""
    node = only_user(value)
    if node is None or not is_static(node.outputs[0]):
        return None
    alike = shape_of(node.outputs[0]) == shape_of(value)
    return node if alike and mixed_axes(node) in (0, 1) else None


def split_heads(graph: PassReshapes, node: ir.Node, found: Found) -> bool:
    """Give a product the two axes, batch and heads, that it is read with."""
    value, shape = found["x"], shape_of(node.outputs[0])
    wanted = bool(split_of(shape_of(value), shape)) and follows_matmul(value, shape)
    if wanted:
        graph.replace(node, graph.hoist(value, shape, node))
    return wanted


def join_heads(graph: PassReshapes, node: ir.Node, found: Found) -> bool:
    """Multiply by what was [b, h, m, n] as it was."""
    shape = shape_of(node.outputs[0])
    split = split_of(shape_of(found["joined"]), shape_of(found["x"]))
    if split is not None and len(shape) == 3:
        graph.sink(node, (*split, *shape[1:]), hoisted={1})
    return split is not None


def split_of(joined: Sequence[int], wanted: Sequence[int]) -> tuple[int, int] | None:
    """Batch and heads, if [b h, m, n] and [b, h, m, n] are the shapes."""
    if len(joined) != 3 or len(wanted) != 4 or tuple(joined[1:]) != tuple(wanted[2:]):
        return None
    return (wanted[0], wanted[1]) if joined[0] == wanted[0] * wanted[1] else None


def follows_matmul(value: ir.Value, wanted: tuple[int, ...]) -> bool:
    """Whether a product makes a value, or what a Reshape passes on the way to one."""
    node = value.producer()
    if node is None or only_user(value) is None:
        return False
    order = transpose_order(value)
    if order is not None and node.inputs[0] is not None:
        found = regroup_axes(shape_of(node.inputs[0]), order, wanted)
        return found is not None and follows_matmul(node.inputs[0], found.shape)
    shapes = operand_shapes(node, wanted)
    if shapes is None or node.op_type == "MatMul":
        return shapes is not None
    values = [x for x in node.inputs if x is not None]
    read = [x for x in zip(values, shapes, strict=True) if shape_of(x[0]) != x[1]]
    return any(follows_matmul(*x) for x in read)


def follow_products(graph: PassReshapes, node: ir.Node, found: Found) -> bool:
    """Swap an elementwise operation of one tensor and the Reshape in front of it."""
    x, made = found["x"], found["made"]
    alike = shape_of(made) == shape_of(node.outputs[0]) and mixed_axes(node) == 0
    wanted = alike and [v for v in node.inputs if is_computed(v)] == [made]
    if wanted and is_behind(x):
        graph.sink(node, shape_of(x))
    return wanted


def is_behind(value: ir.Value) -> bool:
    """Whether a product makes a value, or an elementwise operation behind one."""
    node = value.producer()
    while node is not None and only_user(node.outputs[0]) is not None:
        if node.op_type in PRODUCTS:
            return True
        computed = [v for v in node.inputs if is_computed(v)]
        if mixed_axes(node) != 0 or len(computed) != 1 or computed[0] is None:
            return False
        node = computed[0].producer()
    return False


def meet_transposes(graph: GraphEditor, node: ir.Node) -> None:
    """Hoist a Reshape whose transpose meets another one then."""
    out = node.outputs[0]
    for values in TURNED.match(node) if reaches_transpose(out) else ():
        order = transpose_order(values["turned"])
        assert order is not None, "the pattern has a Transpose"
        found = regroup_axes(shape_of(values["x"]), order, shape_of(out))
        if found is not None:
            made = graph.reshape(values["x"], found.shape, node)
            graph.replace(node, graph.transpose(made, found.order, node))


def reaches_transpose(value: ir.Value) -> bool:
    """Whether nothing but elementwise operations is between a value and a Transpose."""
    node = only_user(value)
    while node is not None and is_tensor_op(node, ONE_TO_ONE):
        if len([v for v in node.inputs if is_computed(v)]) != 1:
            return False
        node = only_user(node.outputs[0])
    return node is not None and is_tensor_op(node, {"Transpose"})


TURNED = Pattern("Reshape(turned := Transpose(x), ...)", shared=True)
REPEATED = "Reshape(Expand(k, ...), ...)"
SHARE_HEADS = Rule(
    Pattern(f"MatMul(q, {REPEATED} | Transpose({REPEATED}))"), share_heads
)
SPLIT_HEADS = Rule(Pattern("Reshape(x, ...)"), split_heads)
JOIN_HEADS = Rule(
    Pattern("MatMul(joined := Reshape(x, ...), y)", shared=True), join_heads
)
FOLLOW_PRODUCTS = Rule(
    Pattern("_(..., made := Reshape(x, ...), ...)", made=is_computed), follow_products
)
