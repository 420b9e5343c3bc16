"""Replacing a node by other nodes: values, graph outputs and names stay right."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from nanoloom.graph.unique_names import Names, bodies, nested


def substitute(
    graph: ir.Graph, node: ir.Node, values: Sequence[ir.Value | None]
) -> None:
    """Give the uses of a node's outputs these values, and remove the node.

    An output of the graph keeps its name: the value takes it over where it is computed
    in this graph and is no output yet; otherwise an Identity stands between.
    """
    for old, new in zip(node.outputs, values, strict=False):
        if new is None or not (old.uses() or old.is_graph_output()):
            continue
        if new.type is None:
            new.type = old.type
        if new.shape is None:
            new.shape = old.shape
        if old.is_graph_output():
            producer = new.producer()
            if producer is None or producer.graph is not graph or new.is_graph_output():
                between = ir.Node("", "Identity", [new], name=f"{node.name}/{old.name}")
                graph.insert_after(node, between)
                new = typed_like(between.outputs[0], new)
            name, old.name = old.name, None
            new.name = name
        ir.convenience.replace_all_uses_with(old, new, replace_graph_outputs=True)
    discard(graph, node)


def typed_like(value: ir.Value, other: ir.Value) -> ir.Value:
    """`value` with the element type and shape of another, and what is known of it."""
    value.type, value.shape = other.type, other.shape
    value.meta.update(other.meta)
    return value


def discard(graph: ir.Graph, node: ir.Node) -> None:
    """Remove an unused node; its bodies no longer count as users of outer values."""
    for body in bodies(node):
        detach(body)
    graph.remove(node, safe=True)


def detach(body: ir.Graph) -> None:
    """Let the nodes of a body that is not needed use nothing."""
    for inner in nested(body):
        for i in range(len(inner.inputs)):
            inner.replace_input_with(i, None)


def inline_graph(
    body: ir.Graph,
    arguments: Sequence[ir.Value | None],
    graph: ir.Graph,
    after: ir.Node,
) -> list[ir.Value]:
    """Put a body's nodes behind a node of `graph`; gives the body's outputs there.

    arguments: what takes the place of the body's inputs (None: an omitted input).
    """
    places = dict(zip(body.inputs, arguments, strict=True))
    found = [places.get(value) or value for value in body.outputs]
    body.outputs.clear()
    for formal, actual in places.items():
        for user, index in formal.uses():
            user.replace_input_with(index, actual)
    for value in list(body.initializers.values()):
        body.initializers.pop(value.name)  # type: ignore[arg-type]
        graph.register_initializer(value)
    nodes = list(body)
    body.remove(nodes)
    graph.insert_after(after, nodes)
    return found


def local_outputs(body: ir.Graph, names: Names) -> None:
    """Make every output of a body a value of its own nodes, used as output once.

    What is passed through from outside, from an input or twice goes by Identity.
    """
    seen: set[ir.Value] = set()
    for i, value in enumerate(list(body.outputs)):
        producer = value.producer()
        if producer is not None and producer.graph is body and value not in seen:
            seen.add(value)
            continue
        between = ir.Node("", "Identity", [value], name=names.node("passed"))
        made = typed_like(between.outputs[0], value)
        made.name = names.value(f"{value.name}.passed")
        body.append(between)
        body.outputs[i] = made
