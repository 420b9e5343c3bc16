"""Sequences that leave a graph or a branch: each of their tensors is an output."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from nanoloom.errors import Unsupported
from nanoloom.graph.sequences.change import elements_of
from nanoloom.graph.splice import substitute, typed_like
from nanoloom.graph.unique_names import Names
from nanoloom.graph.unlike_branches import unlike_branches

SPANS = "nanoloom.spans"  # of a branch: of each output, how many tensors it is
Spans = Sequence[int | None]


def open_outputs(graph: ir.Graph, names: Names) -> None:
    """Put the tensors of sequences in the places of these; `graph.meta` says of which.

    Those of the sequence y are called y[0], y[1] ... where y is called anything.
    """
    found = [elements_of(value) for value in graph.outputs]
    if all(values is None for values in found):
        return
    graph.meta[SPANS] = [None if x is None else len(x) for x in found]
    made: list[ir.Value] = []
    for own, values in zip(graph.outputs, found, strict=True):
        if values is None:
            made.append(own)
            continue
        for i, value in enumerate(values):
            node = ir.Node("", "Identity", [value], name=names.node("element"))
            graph.append(node)
            made.append(typed_like(node.outputs[0], value))
            made[-1].name = free(graph, names, f"{own.name}[{i}]")
    graph.outputs.clear()
    graph.outputs.extend(made)


def free(graph: ir.Graph, names: Names, name: str) -> str:
    """A name, after whatever value inside of the graph has it got another one."""
    if name not in names.values:
        return names.value(name)
    others = [*graph.initializers.values(), *(x for n in graph for x in n.outputs)]
    for value in others:
        if value.name == name and not value.is_graph_output():
            value.name = names.value(f"{name}.inner")
            return name
    raise Unsupported(
        f"the model has another value of the name {name}",
        where=f"output {name.rpartition('[')[0]}",
        hint="give that another name",
    )


def spans_of(node: ir.Node, bodies: Sequence[ir.Graph]) -> Spans | None:
    """What both branches of an If give; None where that is tensors alone.

    Raises DataDependent for sequences of several lengths.
    """
    found = [x for body in bodies if (x := body.meta.pop(SPANS, None)) is not None]
    if not found:
        return None
    for index, spans in enumerate(zip(found[0], found[-1], strict=True)):
        if spans[0] != spans[1]:
            raise unlike_branches(
                node,
                index,
                (said_of(spans[0]), said_of(spans[1])),
                "sequences of one length",
            )
    return found[0]


def said_of(span: int | None) -> str:
    if span is None:
        return "a tensor"
    return f"a sequence of {span} tensor{'' if span == 1 else 's'}"


def regroup(graph: ir.Graph, node: ir.Node, spans: Spans, names: Names) -> None:
    """An If whose outputs are tensors, and the sequences of them behind it."""
    attributes = list(node.attributes.values())
    node.attributes.clear()
    count = sum(1 if n is None else n for n in spans)
    made = ir.Node("", "If", node.inputs, attributes, num_outputs=count, name=node.name)
    values, places = iter(made.outputs), list[ir.Value | None]()
    groups: list[ir.Node] = []
    for old, n in zip(node.outputs, spans, strict=True):
        if n is None:
            value = next(values)
            value.name = old.name
            places.append(value)
            continue
        own = [next(values) for _ in range(n)]
        for i, value in enumerate(own):
            value.name = names.value(f"{node.name}/{i}")
        name = names.node(f"{node.name}/sequence")
        groups.append(ir.Node("", "SequenceConstruct", own, name=name))
        groups[-1].outputs[0].name = old.name
        places.append(groups[-1].outputs[0])
    graph.insert_after(node, [made, *groups])
    substitute(graph, node, places)
