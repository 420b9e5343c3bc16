"""Inputs that are lists of arrays or may be left out, as inputs of the arrays in them.

What a call holds decides: a list of three arrays is three inputs, x[0] to x[2], and a
SequenceConstruct of them; what is left out is an Optional of nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx_ir as ir

from nanoloom.errors import Unsupported

# What a call gives for an input: None, the rank of an array, or those of a list.
Held = int | tuple[int, ...] | None
LIST, OPTIONAL = "list", "optional"


def holds(value: ir.Value) -> str:
    """The words for an input that is no tensor: "list", "optional", both, or ""."""
    kind, words = value.type, list[str]()
    if isinstance(kind, ir.OptionalType):
        words.append(OPTIONAL)
        kind = kind.elem_type
    if isinstance(kind, ir.SequenceType):
        words.append(LIST)
        kind = kind.elem_type
    return " ".join(words) if words and isinstance(kind, ir.TensorType) else ""


def row_of(value: ir.Value) -> tuple[str, list[int | str], str] | None:
    """Name, shape of an array and element type behind the words; None for a tensor.

    Raises Unsupported for strings.
    """
    if not (words := holds(value)):
        return None
    if value.dtype is None or value.dtype == ir.DataType.STRING:
        reason = f"is {words} of strings"
        raise Unsupported(reason, where=f"input {value.name}", hint="give it arrays")
    dims = [d if isinstance(d, int) else str(d) for d in value.shape or ()]
    return str(value.name), dims, f"{words} {np.dtype(value.dtype.numpy()).name}"


def with_arrays(model: ir.Model, held: Mapping[str, Held]) -> ir.Model:
    """A copy of the model that takes the arrays."""
    made = model.clone()
    graph = made.graph
    first = graph[0] if len(graph) else None
    for value in list(graph.inputs):
        if (name := str(value.name)) in held:
            inputs, nodes = in_place(value, held[name])
            if first is None:
                graph.extend(nodes)
            else:
                graph.insert_before(first, nodes)
            place = graph.inputs.index(value)
            graph.inputs[place : place + 1] = inputs
            (whole,) = nodes[-1].outputs
            ir.convenience.replace_all_uses_with(
                value, whole, replace_graph_outputs=True
            )
    return made


def in_place(value: ir.Value, held: Held) -> tuple[list[ir.Value], list[ir.Node]]:
    """Inputs that are tensors, and nodes that make of them what the input was."""
    name, kind = str(value.name), value.type
    value.name = None
    ranks = [held] if isinstance(held, int) else held or ()
    names = (
        [name] if isinstance(held, int) else [f"{name}[{i}]" for i in range(len(ranks))]
    )
    assert value.dtype is not None  # its row was written
    inputs = [
        ir.Value(
            name=called,
            type=ir.TensorType(value.dtype),
            shape=ir.Shape([None] * rank),
        )
        for called, rank in zip(names, ranks, strict=True)
    ]
    nodes: list[ir.Node] = []
    given, inner = list(inputs), kind
    if isinstance(held, tuple):
        dtype = [] if held else [ir.AttrInt64("dtype", int(value.dtype))]
        op = "SequenceConstruct" if held else "SequenceEmpty"
        nodes.append(ir.Node("", op, given, dtype, name=f"{name}/list"))
        given = list(nodes[-1].outputs)
        inner = kind.elem_type if isinstance(kind, ir.OptionalType) else kind
        given[0].name, given[0].type = f"{name}/list", inner
    if isinstance(kind, ir.OptionalType):
        nodes.append(ir.Node("", "Optional", given, name=f"{name}/optional"))
        nodes[-1].outputs[0].name = f"{name}/optional"
        nodes[-1].outputs[0].type = kind
    return inputs, nodes
