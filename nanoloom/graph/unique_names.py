"""Names: every node and every value of a graph and of its bodies has one of its own.

Two branches may use one name for two constants, and exporters leave nodes unnamed;
parameters, messages and reports need to tell them apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import onnx_ir as ir

PROVISIONAL = "nanoloom.provisional"  # how many values were made before, of a graph


@dataclass(frozen=True)
class Names:
    """The names that are taken, of values and of nodes, and a way to new ones."""

    values: set[str] = field(default_factory=set)
    nodes: set[str] = field(default_factory=set)

    def value(self, wish: str) -> str:
        return fresh(wish, self.values)

    def node(self, wish: str) -> str:
        return fresh(wish, self.nodes)


def fresh(wish: str, taken: set[str]) -> str:
    """`wish`, or `wish.1`, `wish.2` ... where that is taken; takes it."""
    name, count = wish, 0
    while name in taken:
        count += 1
        name = f"{wish}.{count}"
    taken.add(name)
    return name


def bodies(node: ir.Node) -> Iterator[ir.Graph]:
    """The graphs among the attributes of a node."""
    for attribute in node.attributes.values():
        if attribute.is_ref():
            continue
        if attribute.type == ir.AttributeType.GRAPH:
            yield attribute.as_graph()
        elif attribute.type == ir.AttributeType.GRAPHS:
            yield from attribute.as_graphs()


def nested(nodes: ir.Graph | list[ir.Node]) -> Iterator[ir.Node]:
    """These nodes and all nodes of their bodies."""
    for node in list(nodes):
        yield node
        for body in bodies(node):
            yield from nested(body)


def unique_names(graph: ir.Graph) -> Names:
    """Name what has no name, rename what shares one; the model's own values win."""
    names = Names()
    interface = {*graph.inputs, *graph.outputs, *graph.initializers.values()}
    names.values.update(value.name for value in interface if value.name)
    for node in graph:
        name_node(node, names)
        for value in node.outputs:
            if value.name and value not in interface:
                value.name = names.value(value.name)
    for node in graph:
        for body in bodies(node):
            rename(body, names)
    return names


def rename(graph: ir.Graph, names: Names, prefix: str = "") -> None:
    """Give a body's values and nodes names of their own, in its bodies too."""
    for value in dict.fromkeys([*graph.inputs, *graph.initializers.values()]):
        value.name = names.value(f"{prefix}{value.name}")
    for node in graph:
        for value in node.outputs:
            if value.name:
                value.name = names.value(f"{prefix}{value.name}")
        if node.name:
            node.name = f"{prefix}{node.name}"
        name_node(node, names)  # one without a name: after its first output
        for body in bodies(node):
            rename(body, names, prefix)


def name_for_now(graph: ir.Graph, node: ir.Node, value: ir.Value) -> None:
    """Name a value that a pass makes, until `name_made`: its node's and a number."""
    count = int(graph.meta.get(PROVISIONAL, 0)) + 1
    graph.meta[PROVISIONAL], value.meta[PROVISIONAL] = count, count
    value.name = f"{node.name}#{count}"


def name_made(graph: ir.Graph) -> None:
    """Values that passes made are called after their nodes, in any process alike."""
    values = [value for node in graph for value in node.outputs]
    others = [*graph.inputs, *graph.initializers.values()]
    taken = {value.name for value in (*values, *others) if value.name}
    for node in graph:
        for value in node.outputs:
            count = value.meta.pop(PROVISIONAL, None)
            if value.name == f"{node.name}#{count}":
                value.name = fresh(node.name or node.op_type, taken)


def name_node(node: ir.Node, names: Names) -> None:
    """A name of its own: the node's, or one made of its first output's."""
    made = next((value.name for value in node.outputs if value.name), "")
    node.name = names.node(node.name or made or node.op_type)
