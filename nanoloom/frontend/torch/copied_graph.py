"""A graph of torch that may be changed while its program stays as it is."""

from __future__ import annotations

from torch import fx


def copied(graph: fx.Graph) -> tuple[fx.Graph, dict[fx.Node, fx.Node]]:
    """The graph again, and each node's copy, of the same name."""
    made, copies = fx.Graph(), dict[fx.Node, fx.Node]()
    result = made.graph_copy(graph, copies)
    for node, copy in copies.items():
        copy.name = node.name  # a graph that is made anew calls no argument "input"
    (output,) = (node for node in graph.nodes if node.op == "output")
    made.create_node("output", "output", (result,)).meta = dict(output.meta)
    return made, copies
