"""Names of nodes, so that every message and report can name one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import onnx_ir as ir


@dataclass
class Names:
    """Names in use.  numbers: the last one put behind a name that was taken."""

    taken: set[str]
    numbers: Counter[str] = field(default_factory=Counter[str])

    @classmethod
    def of(cls, nodes: Iterable[ir.Node]) -> Names:
        return cls({node.name for node in nodes if node.name})

    def take(self, name: str) -> str:
        """The name itself or, if it is in use, the name with a number from 2 on."""
        made = name
        while made in self.taken:
            self.numbers[name] += 1
            made = f"{name}_{self.numbers[name] + 1}"
        self.taken.add(made)
        return made


def name_nodes(model: ir.Model) -> None:
    """Give nameless nodes names like Add_17, and no two nodes the same, in place.

    17 is the place of the node in its graph; in the graph inside a node, the name
    follows the node's: If_3/Add_0.
    """
    name_graph(model.graph, "", Names.of(model.graph.all_nodes()), set())
    for function in model.functions.values():
        name_graph(function, "", Names.of(function.all_nodes()), set())


def name_graph(
    graph: ir.Graph | ir.Function, parent: str, names: Names, used: set[str]
) -> None:
    for index, node in enumerate(graph):
        if not node.name:
            prefix = f"{parent}/" if parent else ""
            node.name = names.take(f"{prefix}{node.op_type}_{index}")
        elif node.name in used:
            node.name = names.take(node.name)
        used.add(node.name)
        for attribute in node.attributes.values():
            if attribute.is_ref():
                continue
            if attribute.type == ir.AttributeType.GRAPH:
                name_graph(attribute.as_graph(), node.name, names, used)
            elif attribute.type == ir.AttributeType.GRAPHS:
                for body in attribute.as_graphs():
                    name_graph(body, node.name, names, used)
