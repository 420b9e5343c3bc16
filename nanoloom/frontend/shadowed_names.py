"""A body's inputs that have the name of a value around it get one of their own.

ONNX asks for names that differ; other runtimes read the inner one, and exporters rely
on it: a Loop carries `b` into its body as `b`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from itertools import count

import onnx

from nanoloom.frontend.proto_walk import bodies

Nodes = Iterable[onnx.NodeProto]


def rename_shadows(model: onnx.ModelProto) -> None:
    """Rename them in the model, which is ours."""
    taken = set(names_of(model.graph))
    rename_in(model.graph.node, defined(model.graph), taken)
    for function in model.functions:
        made = {name for node in function.node for name in node.output}
        taken |= made | {*function.input}
        rename_in(function.node, made | {*function.input}, taken)


def rename_in(nodes: Nodes, visible: AbstractSet[str], taken: set[str]) -> None:
    for node in nodes:
        for body in bodies(node):
            hidden = [x.name for x in body.input if x.name in visible]
            if hidden:
                taken |= set(names_of(body))
                substitute(body, {name: another(name, taken) for name in hidden})
            rename_in(body.node, visible | defined(body), taken)


def another(name: str, taken: set[str]) -> str:
    """A name like this one that nothing has; it is taken then."""
    found = next(f"{name}.{i}" for i in count(1) if f"{name}.{i}" not in taken)
    taken.add(found)
    return found


def defined(graph: onnx.GraphProto) -> set[str]:
    """What the graph gives a name to: inputs, weights, results of nodes."""
    made = {name for node in graph.node for name in node.output}
    return made | {x.name for x in (*graph.input, *graph.initializer)}


def names_of(graph: onnx.GraphProto) -> Iterator[str]:
    """Those that a graph and the bodies inside of it give."""
    yield from defined(graph)
    for node in graph.node:
        for body in bodies(node):
            yield from names_of(body)


def substitute(graph: onnx.GraphProto, names: Mapping[str, str]) -> None:
    """Write other names wherever the graph reads or gives some, bodies included."""
    for value in (
        *graph.input, *graph.output, *graph.value_info, *graph.initializer,
    ):  # fmt: skip
        value.name = names.get(value.name, value.name)
    for node in graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names.get(name, name) for name in node.output]
        for body in bodies(node):
            own = defined(body)
            left = {old: new for old, new in names.items() if old not in own}
            substitute(body, left)
