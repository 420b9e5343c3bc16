"""What a model computes of constants alone, before its dimensions have numbers.

A model is bound to numbers for every variant, and a dozen times where its sizes stay
open.  Positions, masks and biases that no size decides about are most of the nodes of
some exporters: they are the same each time.
"""

from __future__ import annotations

from dataclasses import replace

import onnx_ir as ir

from nanoloom.errors import Error
from nanoloom.frontend.declared import CONTRADICTIONS, contradictions_of
from nanoloom.frontend.memory_claims import require_addresses
from nanoloom.graph import value_origin
from nanoloom.graph.agreement import require_types
from nanoloom.graph.enumerated_attributes import require_known
from nanoloom.graph.propagate import Propagation, make_constant
from nanoloom.graph.unique_names import unique_names


def with_early_constants(model: ir.Model) -> ir.Model:
    """A copy of a model whose dimensions are open, and of whose nodes many are gone.

    What cannot be computed stays for the walk that says why.  Bodies of nodes stay.
    """
    made = model.clone()
    made.meta[CONTRADICTIONS] = contradictions_of(model)
    names = unique_names(made.graph)
    walk = Propagation(
        frozenset(),
        dict(made.opset_imports),
        names,
        contradictions=contradictions_of(made),
    )
    for node in made.graph:
        if is_early(walk, node):
            compute(walk, made.graph, node)
    return made


def is_early(walk: Propagation, node: ir.Node) -> bool:
    """Whether all that decides about a node is known.

    An input with a default may be given another value; a declared name of a size is
    compared with what is computed when it has a number, and so is an output's type.
    """
    if any(x is not None and x.is_graph_input() for x in node.inputs):
        return False
    if any(x.is_graph_output() or has_names(x) for x in node.outputs):
        return False
    return is_plain_constant(node) or walk.is_foldable(node)


def has_names(value: ir.Value) -> bool:
    """Whether a value's shape is declared, and not in numbers alone."""
    return value.shape is not None and not value.shape.is_static()


def is_plain_constant(node: ir.Node) -> bool:
    return node.op_type == "Constant" and node.domain == ""


def compute(walk: Propagation, graph: ir.Graph, node: ir.Node) -> None:
    """Put constants in a node's place, if they can be had."""
    try:
        require_types(node, walk.opsets)
        require_known(node)
        tensors = walk.constants(node)
        for value in node.outputs:
            require_addresses(value, "")
        if tensors is not None and None not in tensors:
            make_constant(graph, node, tensors)
    except Error:
        return  # whoever binds the model is told


def own_origins(bound: ir.Model) -> None:
    """Let the constants of a copy say that they come from values of the copy."""
    known = bound.graph.initializers
    for value in known.values():
        origin = value.meta.get(value_origin.KEY)
        if origin is not None:
            inputs = tuple(x and known.get(x.name or "", x) for x in origin.inputs)
            value.meta[value_origin.KEY] = replace(origin, inputs=inputs)
