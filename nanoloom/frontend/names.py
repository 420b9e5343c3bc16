"""Names of nodes, so that every message and report can name one."""

from __future__ import annotations

import onnx_ir as ir


def name_nodes(model: ir.Model) -> None:
    """Give nameless nodes names like Add_17, and no two nodes the same, in place.

    17 is the place of the node in its graph; in the graph inside a node, the name
    follows the node's: If_3/Add_0.
    """
    taken = {node.name for node in model.graph.all_nodes() if node.name}
    name_graph(model.graph, "", taken, set())
    for function in model.functions.values():
        inside = {node.name for node in function.all_nodes() if node.name}
        name_graph(function, "", inside, set())


def name_graph(
    graph: ir.Graph | ir.Function, parent: str, taken: set[str], used: set[str]
) -> None:
    for index, node in enumerate(graph):
        if not node.name:
            prefix = f"{parent}/" if parent else ""
            node.name = free(f"{prefix}{node.op_type}_{index}", taken)
        elif node.name in used:
            node.name = free(node.name, taken)
        taken.add(node.name)
        used.add(node.name)
        for attribute in node.attributes.values():
            if attribute.is_ref():
                continue
            if attribute.type == ir.AttributeType.GRAPH:
                name_graph(attribute.as_graph(), node.name, taken, used)
            elif attribute.type == ir.AttributeType.GRAPHS:
                for body in attribute.as_graphs():
                    name_graph(body, node.name, taken, used)


def free(name: str, taken: set[str]) -> str:
    """The name itself or, if another node has it, the name with a number."""
    if name not in taken:
        return name
    number = 2
    while f"{name}_{number}" in taken:
        number += 1
    return f"{name}_{number}"
