"""Results that lie in the memory of an argument or of another result: torch itself
takes these views.

AOTAutograd makes the alias that a user gets of where in its memory such a result lies,
so a tensor of its own, with the same numbers, would be read at another place.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import fx

from nanoloom.frontend.torch.call import is_mutation
from nanoloom.frontend.torch.decomposed import storage
from nanoloom.torch.graph_program import changed_inputs

Run = Callable[..., Any]


def with_views(
    traced: fx.GraphModule, compiled: Callable[[fx.GraphModule], Run]
) -> Run:
    """What `compiled` makes of the graph without such results, and these."""
    holders = [n for n in traced.graph.nodes if n.op == "placeholder"]
    became = {value: holder for holder, value in changed_inputs(traced.graph).items()}
    (output,) = (n for n in traced.graph.nodes if n.op == "output")
    results = list(output.args[0])
    views = {
        place: node for place, node in enumerate(results)
        if isinstance(node, fx.Node) and is_view(node, became)
    }  # fmt: skip
    bases = shared_bases(results, views)
    views |= {place: results[place] for place in bases}
    if not views:
        return compiled(traced)
    made = [None if i in views else x for i, x in enumerate(results)]
    made += [x for x in dict.fromkeys(bases.values()) if x not in made]
    roots = {base: made.index(base) for base in bases.values()}
    graph = views_alone(holders, list(views.values()), became, list(roots))
    taken = fx.GraphModule(traced, graph)
    output.args = (made,)
    taken_nodes = chain(list(views.values()), {**became, **roots})
    for node in reversed(list(traced.graph.nodes)):
        if node in taken_nodes and not node.users:
            traced.graph.erase_node(node)
    traced.recompile()
    run = compiled(traced) if computes(traced.graph) else traced.forward

    def both(*args: Any) -> list[Any]:
        made = list(run(*args))
        held = [made[place] for place in roots.values()]
        for place, view in zip(views, taken(*args, *held), strict=True):
            made[place] = view
        return made[: len(results)]

    return both


def shared_bases(
    results: Sequence[Any], views: Mapping[int, fx.Node]
) -> dict[int, fx.Node]:
    """Places of results that lie in another's memory, and what that was made as."""
    places: dict[int, list[int]] = {}
    for place, node in enumerate(results):
        own = isinstance(node, fx.Node) and place not in views
        if own and (found := storage(node)) is not None:
            places.setdefault(found, []).append(place)
    shared = [p for each in places.values() if len(each) > 1 for p in each]
    roots = {place: root(results[place]) for place in shared}
    return {place: base for place, base in roots.items() if results[place] is not base}


def root(node: fx.Node) -> fx.Node:
    """What a node is a view of; itself, if of nothing."""
    while (before := source(node)) is not None:
        node = before
    return node


def computes(graph: fx.Graph) -> bool:
    """Whether a result, or a change of an argument, is a call's."""
    (output,) = (n for n in graph.nodes if n.op == "output")
    made = [n for n in output.all_input_nodes if n.op != "placeholder"]
    return bool(made or changed_inputs(graph))


def source(node: fx.Node) -> fx.Node | None:
    """What a node is a view of, or one of several views; a change is none."""
    if node.op != "call_function" or not node.args or is_mutation(node):
        return None
    before: Any = node.args[0]
    if node.target is operator.getitem:
        before = before.args[0] if before.args else None
    same = isinstance(before, fx.Node) and storage(before) is not None
    return before if same and storage(before) == storage(node) else None


def is_view(node: fx.Node, became: Mapping[fx.Node, fx.Node]) -> bool:
    """Of an argument, or of what it is at the end of the call."""
    found = source(node)
    while found is not None:
        if found.op == "placeholder" or found in became:
            return True
        found = source(found)
    return False


def chain(nodes: Sequence[fx.Node], became: Mapping[fx.Node, Any]) -> set[fx.Node]:
    """The nodes and what they are computed of, up to arguments and what they became."""
    found, left = set[fx.Node](), list(nodes)
    while left:
        node = left.pop()
        if node.op != "placeholder" and node not in became and node not in found:
            found.add(node)
            left += node.all_input_nodes
    return found


def views_alone(
    holders: Sequence[fx.Node], views: Sequence[fx.Node],
    became: Mapping[fx.Node, fx.Node], bases: Sequence[fx.Node],
) -> fx.Graph:  # fmt: skip
    """A graph of the same arguments and, behind them, bases; it gives the views."""
    graph, ends = fx.Graph(), {**became, **dict.fromkeys(bases)}
    wanted = chain(views, ends)
    made = {node: graph.node_copy(node) for node in holders}
    made |= {value: made[holder] for value, holder in became.items()}
    made |= {base: graph.placeholder(f"{base.name}_base") for base in bases}
    for node in views[0].graph.nodes:
        if node in wanted:
            made[node] = graph.node_copy(node, made.__getitem__)
    graph.output([made[node] for node in views])
    return graph
