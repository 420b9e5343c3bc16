"""Operators of ONNX Runtime's own domain, replaced by nodes of ONNX's operators.

Its optimizer and its quantizers write them.  The new nodes carry the version of the
operator set that they are of, so that they mean the same in a model of any version.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from nanoloom.errors import Error
from nanoloom.frontend.custom_operators import REGISTERED
from nanoloom.frontend.microsoft.inferred_types import InferredTypes
from nanoloom.frontend.microsoft.operators import (
    DEFAULT_DOMAIN,
    OPERATORS,
    Expansion,
)
from nanoloom.frontend.microsoft.replacement import BEFORE, Refused, Replacement
from nanoloom.frontend.node_names import Names
from nanoloom.frontend.problems import MICROSOFT, REFUSAL

GRAPH, GRAPHS = ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS
LAYER_NORMALIZATION = 17  # the opset that it came with


def expand_microsoft(model: ir.Model) -> None:
    """Replace what there is an expansion for, in place.

    A node that has none, or says what its expansion does not know, stays; why, the
    pass notes with it, for `problems`.
    """
    if not any(is_own(node) for node in model.graph.all_nodes()):
        return
    names = {x.name for g in model.graphs() for x in g.initializers.values()}
    names |= {x.name for g in model.graphs() for x in g.inputs}
    names |= {x.name for n in model.graph.all_nodes() for x in n.outputs}
    Expander(
        InferredTypes(dict(model.opset_imports)),
        Names.of(model.graph.all_nodes()),
        Names({name for name in names if name}),
    ).visit(model.graph)


def is_own(node: ir.Node) -> bool:
    """Whether a node is one that only ONNX Runtime writes, or a user's."""
    if node.domain in ("", "ai.onnx"):
        return node.op_type in DEFAULT_DOMAIN
    return expansion_of(node) is not None


def expansion_of(node: ir.Node) -> Expansion | None:
    """A user's own comes before what is known here."""
    custom = REGISTERED.get((node.domain, node.op_type))
    if custom is not None:
        return custom.expand
    known = node.domain in (MICROSOFT, "", "ai.onnx")
    return OPERATORS.get(node.op_type) if known else None


class Expander:
    def __init__(self, types: InferredTypes, nodes: Names, values: Names) -> None:
        self.types, self.nodes, self.values = types, nodes, values

    def visit(self, graph: ir.Graph) -> None:
        for node in graph:
            for attribute in node.attributes.values():
                if attribute.type == GRAPH:
                    self.visit(attribute.as_graph())
                elif attribute.type == GRAPHS:
                    for body in attribute.as_graphs():
                        self.visit(body)
            if not is_own(node):
                continue
            if node.op_type == "LayerNormalization":
                self.set_version(node)
            else:
                self.replace(graph, node)

    def set_version(self, node: ir.Node) -> None:
        """The optimizer writes ONNX's own operator into models older than that."""
        version = node.version or self.types.opsets.get("", 1)
        node.version = max(version, LAYER_NORMALIZATION)

    def replace(self, graph: ir.Graph, node: ir.Node) -> None:
        made = Replacement(node, self.types, self.nodes, self.values)
        expand = expansion_of(node)
        assert expand is not None
        try:
            results = expand(made)
            values = [results] if isinstance(results, ir.Value) else list(results)
            require_all(made, values)
        except Refused as refused:
            hint = refused.hint
            if hint == BEFORE and (node.domain, node.op_type) in REGISTERED:
                hint = f"give the node what {expand.__name__} reads"
            node.meta[REFUSAL] = (refused.reason, hint)
            return
        except Exception as error:  # of a function of a user; ours goes on as a bug
            if node.domain == MICROSOFT or isinstance(error, Error):
                raise
            reason = f"its function raised {type(error).__name__}: {error}"
            node.meta[REFUSAL] = (reason, f"look at {expand.__name__}")
            return
        put(graph, made, values)


def require_all(made: Replacement, values: Sequence[ir.Value | None]) -> None:
    """Raise Refused for an attribute, an input or an output that was left out."""
    if unread := made.unread():
        raise Refused(unread)
    for index in range(len(made.node.outputs)):
        value = values[index] if index < len(values) else None
        if made.wants(index) and value is None:
            name = made.node.outputs[index].name
            raise Refused(f"its output {index} ({name}) is not supported")


def put(graph: ir.Graph, made: Replacement, values: Sequence[ir.Value | None]) -> None:
    """New nodes take a node's place, and their results the names of its outputs."""
    node, results = made.node, set[ir.Value]()
    pairs: list[tuple[ir.Value, ir.Value]] = []
    for old, given in zip(node.outputs, values, strict=False):
        if not old.name or given is None:
            continue
        own = given.producer() in made.made and given not in results
        value = given if own else made.op("Identity", given)
        results.add(value)
        pairs.append((old, value))
    for old, value in pairs:
        value.type, value.shape = old.type or value.type, old.shape or value.shape
        value.name, old.name = old.name, None
        ir.convenience.replace_all_uses_with(old, value, replace_graph_outputs=True)
    graph.insert_after(node, made.made)
    graph.remove(node, safe=True)
