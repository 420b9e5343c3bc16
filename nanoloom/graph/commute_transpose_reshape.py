"""A transpose behind a reshape in place of one in front of it, where that is exact.

    Reshape(Transpose<p>(x))  ->  Transpose<q>(Reshape(x))

holds if what the reshape makes one axis of lay side by side in `x` already:
[2, 3, 4, 5] turned to [2, 5, 3, 4] and then [2, 5, 12] is [2, 12, 5] turned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

from nanoloom.graph.editor import GraphEditor, transpose_order
from nanoloom.graph.layout_effects import ONE_TO_ONE, is_tensor_op
from nanoloom.graph.quantization import only_user
from nanoloom.graph.types import is_computed, shape_of


def sink_reshape(graph: GraphEditor, node: ir.Node) -> None:
    """Rewrite a Reshape whose transpose meets another one then."""
    order, out = transpose_order(node.inputs[0]), node.outputs[0]
    if order is None or not reaches_transpose(out):
        return
    turned, wanted = node.inputs[0], shape_of(out)
    source = turned.producer().inputs[0]  # type: ignore[union-attr] - it has one
    assert source is not None
    found = regroup_axes(shape_of(source), order, wanted)
    if found is None:
        return
    inputs = [source, graph.vector(found.shape, node)]
    name = node.name or node.op_type
    made = graph.add(node, "Reshape", inputs, [], found.shape, out, name)
    graph.replace(node, graph.transpose(made, found.order, node))


def reaches_transpose(value: ir.Value) -> bool:
    """Whether nothing but elementwise operations is between a value and a Transpose."""
    node = only_user(value)
    while node is not None and is_tensor_op(node, ONE_TO_ONE):
        if len([v for v in node.inputs if is_computed(v)]) != 1:
            return False
        node = only_user(node.outputs[0])
    return node is not None and is_tensor_op(node, {"Transpose"})


@dataclass(frozen=True)
class CommuteTranspose:
    """The shape before the transpose, and the transpose's order."""

    shape: tuple[int, ...]
    order: tuple[int, ...]


def regroup_axes(
    shape: Sequence[int], order: Sequence[int], wanted: Sequence[int]
) -> CommuteTranspose | None:
    """How `wanted`, a reshape of shape[order], is made of `shape` by a reshape first.

    None where no reshape does it.  Axes of extent 1 lie beside any others.
    """
    turned = [shape[d] for d in order]
    pairs = groups(turned, wanted)
    if pairs is None:
        return None
    found: list[tuple[int, list[int]]] = []  # first axis of `shape`, axes of `wanted`
    for mine, theirs in pairs:
        axes = [order[i] for i in mine if turned[i] != 1]
        between = axes and [d for d in range(axes[0], axes[-1] + 1) if shape[d] != 1]
        if axes and axes != between:
            return None
        found.append((axes[0] if axes else -1, theirs))
    sorted_axes = [d for _, theirs in sorted(found, key=first) for d in theirs]
    back = tuple(sorted_axes.index(d) for d in range(len(wanted)))
    return CommuteTranspose(tuple(wanted[d] for d in sorted_axes), back)


def first(group: tuple[int, list[int]]) -> int:
    return group[0]


def groups(
    one: Sequence[int], other: Sequence[int]
) -> list[tuple[list[int], list[int]]] | None:
    """Axes of two shapes of as many elements, the fewest whose products are equal.

    None for shapes without elements.
    """
    if 0 in one or 0 in other:
        return None
    found: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(one) or j < len(other):
        mine, theirs, left, right = [], [], 1, 1
        while True:
            if i < len(one) and (left < right or not mine):
                left *= one[i]
                mine.append(i)
                i += 1
            elif j < len(other) and (right < left or not theirs):
                right *= other[j]
                theirs.append(j)
                j += 1
            else:
                break
        if left != right:
            return None
        found.append((mine, theirs))
    return found
