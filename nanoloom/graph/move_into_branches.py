"""What reads results of an If whose branches give other ranks is computed in both.

    y = If(c, then: a[n], else: b[n, m])         z = If(c, then: a, Sum(a)
    z = Sum(y)                            ->               else: b, Sum(b))

No value of a program can hold both; what is made of them often has one rank again.  A
reader that does not fit what a branch gives fails where that branch is taken.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from nanoloom.graph.splice import discard, inline_graph, local_outputs
from nanoloom.graph.types import used_by
from nanoloom.graph.unique_names import Names, bodies, nested, rename

BRANCHES = "then_branch", "else_branch"


def move_into_branches(
    node: ir.Node,
    values: Sequence[ir.Value],
    branches: Sequence[ir.Graph],
    names: Names,
) -> bool:
    """Put an If of more in the place of one; the walk completes its shapes next.

    values: outputs that nothing can hold, computed from now on in the branches alone.
    branches: as the model has them.  False where the graph gives one of the values.
    """
    graph = node.graph
    assert graph is not None, "a node that is looked at stands in a graph"
    if any(value.is_graph_output() for value in values):
        return False
    later = list(graph)
    later = later[later.index(node) + 1 :]
    for body in [body for reader in nested(later) for body in bodies(reader)]:
        local_outputs(body, names)
    behind = dependents(node, later)
    moved = readers(values, behind)
    needed = first_ones(later, moved, behind)
    inside = {*nested(moved)}
    results = [x for x in node.outputs if x not in values]
    results += [x for reader in moved for x in reader.outputs]
    wanted = [x for x in results if is_read(x, inside)]
    for x in (*needed, *moved):
        graph.remove(x)
    graph.insert_after(node, needed)
    after = needed[-1] if needed else node
    put(after, node, branches, wanted, inside)
    tail = tail_of(node, moved, wanted, inside)
    for branch, more in zip(
        branches, (tail.clone(allow_outer_scope_values=True), tail), strict=True
    ):
        extend(branch, more, names)
    discard(graph, node)
    return True


def dependents(node: ir.Node, later: Sequence[ir.Node]) -> list[ir.Node]:
    """The nodes behind another that need its results, directly or not."""
    made, found = {*node.outputs}, list[ir.Node]()
    for x in later:
        if not made.isdisjoint(used_by(x)):
            found.append(x)
            made |= {*x.outputs}
    return found


def readers(values: Sequence[ir.Value], behind: Sequence[ir.Node]) -> list[ir.Node]:
    """What reads some values, and what is between them and these readers; in order."""
    found = {x for x in behind if not {*values}.isdisjoint(used_by(x))}
    wanted = {value for x in found for value in used_by(x)}
    for x in reversed(behind):
        if not wanted.isdisjoint(x.outputs):
            found.add(x)
            wanted |= {*used_by(x)}
    return [x for x in behind if x in found]


def first_ones(
    later: Sequence[ir.Node], moved: Sequence[ir.Node], behind: Sequence[ir.Node]
) -> list[ir.Node]:
    """What stands in front of the last one that is moved and needs nothing of it."""
    end = later.index(moved[-1]) if moved else 0
    skipped = {*behind}
    return [x for x in later[:end] if x not in skipped]


def is_read(value: ir.Value, inside: set[ir.Node]) -> bool:
    """Whether others than these nodes need a value."""
    others = any(user not in inside for user, _ in value.uses())
    return others or value.is_graph_output()


def put(
    after: ir.Node,
    node: ir.Node,
    branches: Sequence[ir.Graph],
    wanted: Sequence[ir.Value],
    inside: set[ir.Node],
) -> None:
    """An If like another behind a node, which gives the wanted values to others."""
    graph = after.graph
    assert graph is not None, "it was inserted or is looked at"
    words = [ir.AttrGraph(*pair) for pair in zip(BRANCHES, branches, strict=True)]
    new = ir.Node("", "If", node.inputs, words, num_outputs=len(wanted), name=node.name)
    new.version = node.version
    if wanted:
        graph.insert_after(after, new)
    for old, value in zip(wanted, new.outputs, strict=True):
        value.name, value.type, value.shape = old.name, old.type, old.shape
        for user, index in old.uses():
            if user not in inside:
                user.replace_input_with(index, value)
        for index, output in enumerate(graph.outputs):
            if output is old:
                graph.outputs[index] = value


def tail_of(
    node: ir.Node,
    moved: Sequence[ir.Node],
    wanted: Sequence[ir.Value],
    inside: set[ir.Node],
) -> ir.Graph:
    """The moved nodes as a body: of the node's outputs, to the wanted values."""
    formals = [ir.Value(name=x.name, type=x.type) for x in node.outputs]
    for old, formal in zip(node.outputs, formals, strict=True):
        for user, index in old.uses():
            if user in inside:
                user.replace_input_with(index, formal)
    places = dict(zip(node.outputs, formals, strict=True))
    given = [places.get(x, x) for x in wanted]
    return ir.Graph(formals, given, nodes=moved, name=node.name)


def extend(branch: ir.Graph, tail: ir.Graph, names: Names) -> None:
    """Put what is behind a branch into it."""
    rename(tail, names)
    found = inline_graph(tail, list(branch.outputs), branch, list(branch)[-1])
    branch.outputs.clear()
    branch.outputs.extend(found)
