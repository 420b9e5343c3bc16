"""A transposed convolution of single steps is a convolution with its filters flipped.

    ConvTranspose(x, w [g c, f, k...], pads p)  ->  Conv(x, w' [g f, c, k...], pads q)

w'[f, c, k] is w[c, f, -1 - k] in each group, and q the taps' span - 1 - p.  All that is
known of convolutions then holds for it: planes, layouts, Winograd's method.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from nanoloom.graph.derived_constants import derived
from nanoloom.graph.editor import GraphEditor
from nanoloom.graph.layout_effects import is_tensor_op
from nanoloom.graph.taps_in_product import filters_of
from nanoloom.graph.types import is_static, shape_of
from nanoloom.graph.value_origin import numbers
from nanoloom.weights.derivations import Sliced

SLICE = 10  # the operator set since which its bounds are inputs


def flip_filters(graph: ir.Graph) -> None:
    """Rewrite a graph with static shapes in place.

    Not where the taps are columns of a product: that is less work (taps_in_product.py).
    Nor where pads are wider than taps reach, or the result's extent is an attribute.
    """
    editor = GraphEditor(graph)
    for node in graph:
        pads = pads_of(node) if is_tensor_op(node, {"ConvTranspose"}) else None
        if pads is not None and min(pads) >= 0:
            as_convolution(editor, node, pads)


def pads_of(node: ir.Node) -> list[int] | None:
    """The convolution's pads before and after each axis; None if it is to be none."""
    found, (out,), x = filters_of(node), node.outputs, node.inputs[0]
    if found is None or x is None or not (is_static(x) and is_static(out)):
        return None
    single = all(step == 1 for step in found.strides)
    if not single or numbers(node, "output_shape") or found.are_columns(turned=False):
        return None
    size, made = shape_of(x)[2:], shape_of(out)[2:]
    whole = [s + span - 1 for s, span in zip(size, found.spans, strict=True)]
    cut = cut_in_front(node, [a - o for a, o in zip(whole, made, strict=True)])
    low = [span - 1 - c for span, c in zip(found.spans, cut, strict=True)]
    high = [
        o - s + span - 1 - a
        for o, s, span, a in zip(made, size, found.spans, low, strict=True)
    ]
    return [*low, *high]


def cut_in_front(node: ir.Node, total: Sequence[int]) -> list[int]:
    """How many pixels of the full result are left out along each axis, of so many."""
    mode = node.attributes.get("auto_pad")
    if mode is None or not mode.as_string().startswith("SAME"):
        return numbers(node, "pads")[: len(total)] or [0] * len(total)
    if mode.as_string() == "SAME_UPPER":
        return [t // 2 for t in total]
    return [t - t // 2 for t in total]


def as_convolution(graph: GraphEditor, node: ir.Node, pads: Sequence[int]) -> None:
    """Conv in place of a ConvTranspose."""
    x, w, *bias = node.inputs
    assert w is not None
    kept = [node.attributes[a] for a in ("dilations", "group") if a in node.attributes]
    group = node.attributes.get("group")
    filters = flipped(graph, node, w, 1 if group is None else group.as_int())
    made = graph.add(
        node,
        "Conv",
        [x, filters, *bias],
        [*kept, ir.AttrInt64s("pads", list(pads))],
        shape_of(node.outputs[0]),
        node.outputs[0],
        node.name or node.op_type,
    )
    graph.replace(node, made)


def flipped(graph: GraphEditor, node: ir.Node, w: ir.Value, groups: int) -> ir.Value:
    """[(g, c), f, k...] as [(g, f), c, k...], the taps in the other order."""
    channels, features, *taps = shape_of(w)
    parts = channels // groups
    apart = graph.reshape(w, (groups, parts, features, *taps), node)
    rank = len(taps)
    swapped = graph.transpose(apart, [0, 2, 1, *range(3, 3 + rank)], node)
    filters = graph.reshape(swapped, (groups * features, parts, *taps), node)
    shape = shape_of(filters)
    if all(k == 1 for k in taps):
        return filters
    if filters.const_value is not None:
        starts = (0, 0, *[k - 1 for k in taps])
        change = Sliced(starts, shape, (1, 1, *[-1] * rank))
        made = ir.Value(
            name=f"{filters.name}_flipped",
            shape=ir.Shape(shape),
            type=filters.type,
            const_value=derived(filters, change),
        )
        return graph.registered(made)
    given = [[-1] * rank, [-1 - k for k in taps], [*range(2, 2 + rank)], [-1] * rank]
    bounds = [graph.vector(row, node) for row in given]
    name = f"{node.name}/flipped"
    return graph.add(
        node, "Slice", [filters, *bounds], [], shape, filters, name, version=SLICE
    )
