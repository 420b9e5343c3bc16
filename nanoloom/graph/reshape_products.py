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

from collections.abc import Callable, Sequence

import onnx_ir as ir

from nanoloom.graph.axis_groups import regroup_axes
from nanoloom.graph.editor import GraphEditor, transpose_order
from nanoloom.graph.layout_effects import ONE_TO_ONE, is_tensor_op
from nanoloom.graph.pass_reshapes import PassReshapes, mixed_axes, operand_shapes
from nanoloom.graph.patterns.pattern import Pattern
from nanoloom.graph.quantization import only_user
from nanoloom.graph.types import is_computed, is_static, shape_of

PRODUCTS = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})
REPEATED = Pattern("Reshape(Expand(k, ...), ...)")
TURNED = Pattern("Transpose(x)")
Rule = Callable[[PassReshapes, ir.Node], None]


def pass_reshapes(graph: ir.Graph, *rules: Rule) -> None:
    """Rewrite a graph with static shapes in place."""
    rewriting = PassReshapes(graph)
    for node in graph:
        for rule in rules:
            if node.graph is graph and all(map(is_static, node.outputs)):
                rule(rewriting, node)


def share_heads(graph: PassReshapes, node: ir.Node) -> None:
    """Multiply by what heads share, if a product's right operand repeats it.

    For one row, the next token of a text, to which what is repeated would be most of
    the work.  Many rows share it, and their two products are one kernel for heads only.
    """
    if not is_tensor_op(node, {"MatMul"}):
        return
    shape, right = shape_of(node.outputs[0]), node.inputs[1]
    inner = next((x["x"] for x in TURNED.made(right)), right)
    found = next(REPEATED.made(inner), None)
    few = () if found is None else shape_of(found["k"])
    if len(few) != 5 or few[2] != 1 or len(shape) != 4 or shape[2] != 1:
        return
    batch, groups, *_ = few
    if shape[0] != batch or shape[1] % max(groups, 1):
        return
    split = (batch, groups, shape[1] // groups)
    joined = graph.sink(node, (*split, *shape[2:]), hoisted={1})
    while joined is not None and (after := follower(joined)) is not None:
        joined = graph.sink(after, (*split, *shape_of(after.outputs[0])[2:]))


def follower(value: ir.Value) -> ir.Node | None:
    """What goes over a value's rows, if nothing else reads it and its shape stays."""
    node = only_user(value)
    if node is None or not is_static(node.outputs[0]):
        return None
    alike = shape_of(node.outputs[0]) == shape_of(value)
    return node if alike and mixed_axes(node) in (0, 1) else None


def split_heads(graph: PassReshapes, node: ir.Node) -> None:
    """Give a product the two axes, batch and heads, that it is read with."""
    value, (out, *_) = node.inputs[0] if node.inputs else None, node.outputs
    if not is_tensor_op(node, {"Reshape"}) or value is None or not is_static(value):
        return
    shape = shape_of(out)
    if split_of(shape_of(value), shape) and follows_matmul(value, shape):
        graph.replace(node, graph.hoist(value, shape, node))


def join_heads(graph: PassReshapes, node: ir.Node) -> None:
    """Multiply by what was [b, h, m, n] as it was."""
    if not is_tensor_op(node, {"MatMul"}):
        return
    merge, shape = node.inputs[0].producer(), shape_of(node.outputs[0])  # type: ignore[union-attr] - a MatMul has it
    source = merge.inputs[0] if merge and is_tensor_op(merge, {"Reshape"}) else None
    if source is None or not is_static(source):
        return
    split = split_of(shape_of(merge.outputs[0]), shape_of(source))  # type: ignore[union-attr] - it has a source
    if split is not None and len(shape) == 3:
        graph.sink(node, (*split, *shape[1:]), hoisted={1})


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


def follow_products(graph: PassReshapes, node: ir.Node) -> None:
    """Swap an elementwise operation of one tensor and the Reshape in front of it."""
    computed = (
        [v for v in node.inputs if is_computed(v)] if mixed_axes(node) == 0 else []
    )
    reshape = computed[0].producer() if len(computed) == 1 else None  # type: ignore[union-attr] - computed operands are there
    if reshape is None or not is_tensor_op(reshape, {"Reshape"}):
        return
    x, made = reshape.inputs[0], reshape.outputs[0]
    alike = shape_of(made) == shape_of(node.outputs[0]) and only_user(made) is node
    if x is not None and alike and is_behind(x):
        graph.sink(node, shape_of(x))


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
    order, out = transpose_order(node.inputs[0]), node.outputs[0]
    if order is None or not reaches_transpose(out):
        return
    source = node.inputs[0].producer().inputs[0]  # type: ignore[union-attr] - it has one
    found = regroup_axes(shape_of(source), order, shape_of(out))  # type: ignore[arg-type] - a Transpose has it
    if found is not None and source is not None:
        made = graph.reshape(source, found.shape, node)
        graph.replace(node, graph.transpose(made, found.order, node))


def reaches_transpose(value: ir.Value) -> bool:
    """Whether nothing but elementwise operations is between a value and a Transpose."""
    node = only_user(value)
    while node is not None and is_tensor_op(node, ONE_TO_ONE):
        if len([v for v in node.inputs if is_computed(v)]) != 1:
            return False
        node = only_user(node.outputs[0])
    return node is not None and is_tensor_op(node, {"Transpose"})
