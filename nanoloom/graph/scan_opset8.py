"""Scan as opset 8 has it, with a batch axis: a Scan over the batch around a Scan."""

from __future__ import annotations

import onnx_ir as ir

from nanoloom.errors import Unsupported
from nanoloom.graph.splice import substitute, typed_like
from nanoloom.graph.unique_names import Names

VERSION = 9  # of the two scans that it becomes


def nest(graph: ir.Graph, node: ir.Node, names: Names) -> None:
    """Scan-8(lens, states, xs) -> Scan over b of Scan(states[b], xs[b])."""
    if node.inputs[0] is not None:
        raise Unsupported(
            "sequences of different lengths (sequence_lens)",
            where=f"node {node.name} (Scan)",
            hint="export the model with opset 9 or newer",
        )
    given = list(node.inputs[1:])
    wishes = [f"{node.name}/row.{i}" for i in range(len(given))]
    rows = [ir.Value(name=names.value(wish)) for wish in wishes]
    attributes = [node.attributes["num_scan_inputs"], node.attributes["body"]]
    if "directions" in node.attributes:
        directions = node.attributes["directions"].as_ints()
        attributes.append(ir.AttrInt64s("scan_input_directions", directions))
    inner = ir.Node(
        "",
        "Scan",
        rows,
        attributes,
        num_outputs=len(node.outputs),
        version=VERSION,
        name=names.node(f"{node.name}/row"),
    )
    for value, old in zip(inner.outputs, node.outputs, strict=True):
        value.name = names.value(f"{node.name}/{old.name}")
    body = ir.Graph(
        rows,
        list(inner.outputs),
        nodes=[inner],
        name=f"{node.name}/rows",
        opset_imports=dict(graph.opset_imports),
    )
    del node.attributes["body"]  # it belongs to the inner node now
    outer = ir.Node(
        "",
        "Scan",
        given,
        [ir.AttrInt64("num_scan_inputs", len(given)), ir.AttrGraph("body", body)],
        num_outputs=len(node.outputs),
        version=VERSION,
        name=node.name,
    )
    for value, old in zip(outer.outputs, node.outputs, strict=True):
        typed_like(value, old).name = old.name
    graph.insert_after(node, outer)
    substitute(graph, node, outer.outputs)
