"""The graphs of a model as graphs: every value defined once, before it is needed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

import onnx

from nanoloom.errors import ModelError
from nanoloom.frontend.proto_walk import bodies, label, place

INVALID = "the exporter wrote an invalid model; export it again or report it there"
Nodes = Sequence[onnx.NodeProto]


@dataclass
class Scope:
    """The values of one graph.  outer: names visible from the graphs around it.

    captured: the outer values that its nodes use (the ones around it depend on them).
    ordered: whether every node, inner ones too, stands after those it needs.
    """

    where: str
    outer: AbstractSet[str] = frozenset()
    names: dict[str, str] = field(default_factory=dict[str, str])
    captured: set[str] = field(default_factory=set[str])
    ordered: bool = True

    def define(self, name: str, what: str) -> None:
        """Add a value.  what: the words for it, as `input` or `an output of ...`."""
        if not name:
            raise self.invalid(f"{what} has no name")
        if name in self.names:
            raise self.invalid(
                f"value {name} is defined twice, as {self.names[name]} and as {what}"
            )
        if name in self.outer:
            raise self.invalid(
                f"value {name}, {what}, has the name of a value outside of it"
            )
        self.names[name] = what

    def invalid(self, reason: str) -> ModelError:
        return ModelError(reason, where=self.where, hint=INVALID)


def check_structure(model: onnx.ModelProto, where: str) -> bool:
    """Check the main graph and all functions; whether all are in order of execution.

    Raises ModelError for values that are undefined, defined twice or part of a cycle.
    """
    scopes = [Scope(where)]
    check_graph(model.graph, scopes[0], "")
    outputs = [x.name for x in model.graph.output]
    if not outputs:
        raise ModelError("the graph has no output", where=where, hint=INVALID)
    for function in model.functions:
        scope = Scope(f"{where}: function {function.name}")
        for name in function.input:
            scope.define(name, "an input")
        check_nodes(function.node, scope, "")
        check_outputs(function.output, scope)
        scopes.append(scope)
    return all(scope.ordered for scope in scopes)


def check_graph(graph: onnx.GraphProto, scope: Scope, parent: str) -> None:
    """Define all values of a graph and look up what its nodes and outputs need."""
    for value in graph.input:
        scope.define(value.name, "an input")
    weights = [tensor.name for tensor in graph.initializer]
    inputs = set(scope.names)
    for name in weights:
        if name in inputs:  # its default value
            inputs.remove(name)
            continue
        scope.define(name, "a weight")
    check_nodes(graph.node, scope, parent)
    check_outputs([value.name for value in graph.output], scope)


def check_outputs(outputs: Iterable[str], scope: Scope) -> None:
    seen: set[str] = set()
    for name in outputs:
        if name not in scope.names:
            raise scope.invalid(f"output {name or '(without a name)'} is not computed")
        if name in seen:
            raise scope.invalid(f"output {name} is listed twice")
        seen.add(name)


def check_nodes(nodes: Nodes, scope: Scope, parent: str) -> None:
    """Define what the nodes compute, then look up what each of them needs."""
    names = [label(node, i, parent) for i, node in enumerate(nodes)]
    maker: dict[str, int] = {}
    for i, node in enumerate(nodes):
        for output in filter(None, node.output):
            scope.define(output, f"an output of node {names[i]}")
            maker[output] = i
    needs: list[set[int]] = []
    for node, name in zip(nodes, names, strict=True):
        used = check_node(node, scope, name)
        scope.captured.update(x for x in used if x not in scope.names)
        needs.append({maker[x] for x in used if x in maker})
    if all(max(need, default=-1) < i for i, need in enumerate(needs)):
        return
    scope.ordered = False
    cycle = find_cycle(needs)
    if cycle:
        shown = [names[i] for i in cycle[:6]] + ["..."] * (len(cycle) > 6)
        loop = " -> ".join([*shown, names[cycle[0]]])
        raise scope.invalid(f"nodes need each other's results in a circle: {loop}")


def check_node(node: onnx.NodeProto, scope: Scope, name: str) -> set[str]:
    """The values that a node and the graphs inside it use; all must be defined."""
    where = place(scope.where, node, name)
    if not node.op_type:
        raise ModelError("has no operator", where=where, hint=INVALID)
    used = set(filter(None, node.input))
    inner = list(bodies(node))
    visible = scope.names.keys() | scope.outer if inner else scope.outer
    for body in inner:
        within = Scope(where, visible)
        check_graph(body, within, name)
        used |= within.captured
        scope.ordered = scope.ordered and within.ordered
    for value in used:
        if value not in scope.names and value not in scope.outer:
            raise ModelError(
                f"needs value {value}, which nothing computes",
                where=where,
                hint=INVALID,
            )
    return used


def find_cycle(needs: list[set[int]]) -> list[int]:
    """Nodes that need each other in a circle, none if there is no circle."""
    waiting = [len(need) for need in needs]
    users: list[list[int]] = [[] for _ in needs]
    for node, need in enumerate(needs):
        for maker in need:
            users[maker].append(node)
    ready = [node for node, count in enumerate(waiting) if count == 0]
    while ready:
        for user in users[ready.pop()]:
            waiting[user] -= 1
            if waiting[user] == 0:
                ready.append(user)
    stuck = next((node for node, count in enumerate(waiting) if count), None)
    if stuck is None:
        return []
    path: dict[int, None] = {}  # an ordered set
    while stuck not in path:
        path[stuck] = None
        stuck = min(maker for maker in needs[stuck] if waiting[maker])
    nodes = list(path)
    return nodes[nodes.index(stuck) :][::-1]
