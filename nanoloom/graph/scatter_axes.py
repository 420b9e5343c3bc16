"""Slices are written where they lie, whichever axes their indices are of.

    Transpose<inverse of p>(ScatterND(Transpose<p>(x), i, u))
    ->  nanoloom.ScatterND<axes = the first axes of p>(x, i, u)

torch's `index_copy` and `index_put` along an inner axis are such, and exporters write
them so: a cache of keys [batch, heads, tokens, width] would be turned twice for each
token that is put into it.  Axes of a slice are in the order of x's.
"""

from __future__ import annotations

import onnx_ir as ir

from nanoloom.graph.editor import GraphEditor, inverse, transpose_order
from nanoloom.graph.patterns.pattern import Found, Pattern
from nanoloom.graph.patterns.rules import Rule
from nanoloom.graph.types import is_static, shape_of

DOMAIN = "nanoloom"


def scatter_along(graph: GraphEditor, node: ir.Node, found: Found) -> bool:
    """Put slices of x where they are in it."""
    x, indices, updates, made = (found[name] for name in ("x", "i", "u", "made"))
    scatter, out = made.producer(), node.outputs[0]
    order = transpose_order(scatter.inputs[0] if scatter else None)
    static = all(map(is_static, (x, indices, updates, out)))
    if scatter is None or order is None or not static:
        return False
    if transpose_order(out) != inverse(order):
        return False
    depth, lead = shape_of(indices)[-1], len(shape_of(indices)) - 1
    axes, rest = order[:depth], order[depth:]
    back = [lead + rest.index(axis) for axis in sorted(rest)]
    turned = graph.transpose(updates, [*range(lead), *back], node)
    said = [a for a in scatter.attributes.values() if a.name != "axes"]
    attributes = [*said, ir.AttrInt64s("axes", axes)]
    given, name = [x, indices, turned], scatter.name or "ScatterND"
    shape = shape_of(out)
    graph.replace(
        node, graph.add(node, "ScatterND", given, attributes, shape, x, name, DOMAIN)
    )
    return True


SCATTER_ALONG = Rule(
    Pattern("Transpose(made := ScatterND(Transpose(x), i, u))"), scatter_along
)
