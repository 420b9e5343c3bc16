"""Calls of a model's own functions, replaced by the functions' bodies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import onnx_ir as ir

from nanoloom.errors import ModelError
from nanoloom.frontend.node_names import Names

Values = dict[ir.Value, ir.Value | None]
GRAPH, GRAPHS = ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS


def inline(model: ir.Model, where: str) -> None:
    """Expand every call in place, after `check_functions` has seen that it ends.

    A node of a body is called after the call, `layer_3/Add_1`, and so are values; the
    results keep the caller's names.
    """
    if not model.functions:
        return
    for function in model.functions.values():
        for domain, version in function.opset_imports.items():
            # Checked: where versions differ, the operators used do not.
            model.opset_imports.setdefault(domain, version)
    names = {x.name for g in model.graphs() for x in g.initializers.values()}
    names |= {x.name for g in model.graphs() for x in g.inputs}
    names |= {x.name for n in model.graph.all_nodes() for x in n.outputs}
    values = Names({name for name in names if name})
    inliner = Inliner(model, where, Names.of(model.graph.all_nodes()), values)
    inliner.expand_calls(model.graph)
    model.functions.clear()


@dataclass
class Inliner:
    """Expands calls.  nodes, values: names in use in the main graph."""

    model: ir.Model
    where: str
    nodes: Names
    values: Names

    def expand_calls(self, graph: ir.Graph) -> None:
        for node in graph:  # nodes inserted after the current one are visited too
            function = self.model.functions.get(node.op_identifier())
            if function is not None:
                self.expand(graph, node, function)
                continue
            for attribute in node.attributes.values():
                if attribute.type == GRAPH:
                    self.expand_calls(attribute.as_graph())
                elif attribute.type == GRAPHS:
                    for body in attribute.as_graphs():
                        self.expand_calls(body)

    def expand(self, graph: ir.Graph, call: ir.Node, function: ir.Function) -> None:
        given = [*call.inputs, *[None] * len(function.inputs)]
        values: Values = dict(zip(function.inputs, given, strict=False))
        defaults = {n: a for n, a in function.attributes.items() if a.value is not None}
        body = Body(self, call, {**defaults, **call.attributes}, values)
        nodes = [body.copy_node(node) for node in function]
        for old, formal in zip(call.outputs, function.outputs, strict=False):
            if not old.name:
                continue  # omitted by the caller
            if formal in function.inputs:
                nodes.append(body.copy_value(formal))
            result = values[formal]
            assert result is not None
            result.type, result.shape = (
                old.type or result.type,
                old.shape or result.shape,
            )
            result.name, old.name = old.name, None
            ir.convenience.replace_all_uses_with(
                old, result, replace_graph_outputs=True
            )
        graph.insert_after(call, nodes)
        graph.remove(call, safe=True)


@dataclass
class Body:
    """One copy of a function's body.  values: what stands for the function's own."""

    inliner: Inliner
    call: ir.Node
    attributes: Mapping[str, ir.Attr]
    values: Values

    def copy_node(self, node: ir.Node) -> ir.Node:
        inputs = [x and self.values.get(x, x) for x in node.inputs]
        attributes = [self.copy_attribute(a) for a in node.attributes.values()]
        copy = ir.Node(
            node.domain,
            node.op_type,
            inputs,
            [a for a in attributes if a is not None],
            overload=node.overload,
            num_outputs=len(node.outputs),
            name=self.inliner.nodes.take(f"{self.call.name}/{node.name}"),
            doc_string=node.doc_string,
            metadata_props={**self.call.metadata_props, **node.metadata_props},
        )
        for old, new in zip(node.outputs, copy.outputs, strict=True):
            self.take_over(old, new)
        return copy

    def copy_value(self, value: ir.Value) -> ir.Node:
        """A result that is an argument: the caller's two values stay apart."""
        given = self.values[value]
        if given is None:
            raise ModelError(
                f"uses a result that is its missing input {value.name}",
                where=f"{self.inliner.where}: node {self.call.name}"
                f" ({self.call.op_type})",
                hint="export the model without functions",
            )
        name = self.inliner.nodes.take(f"{self.call.name}/{value.name}")
        copy = ir.node("Identity", [given], name=name)
        self.values[value] = copy.outputs[0]
        return copy

    def take_over(self, old: ir.Value, new: ir.Value) -> None:
        """Give a copied value its name and type; the empty name means unused."""
        name = f"{self.call.name}/{old.name}"
        new.name = self.inliner.values.take(name) if old.name else ""
        new.type, new.shape = old.type, old.shape
        new.doc_string = old.doc_string
        new.metadata_props.update(old.metadata_props)
        self.values[old] = new

    def copy_attribute(self, attribute: ir.Attr) -> ir.Attr | None:
        """The attribute in this call; None if it stands for one that is not given."""
        name, doc = attribute.name, attribute.doc_string
        if attribute.is_ref():
            given = self.attributes.get(attribute.ref_attr_name or "")
            return given and ir.Attr(name, given.type, given.value, doc_string=doc)
        if attribute.type == GRAPH:
            graph = self.copy_graph(attribute.as_graph())
            return ir.AttrGraph(name, graph, doc_string=doc)
        if attribute.type == GRAPHS:
            graphs = [self.copy_graph(graph) for graph in attribute.as_graphs()]
            return ir.AttrGraphs(name, graphs, doc_string=doc)
        return attribute

    def copy_graph(self, graph: ir.Graph) -> ir.Graph:
        inputs = [self.fresh(value) for value in graph.inputs]
        weights = [self.fresh(value) for value in graph.initializers.values()]
        nodes = [self.copy_node(node) for node in graph]
        outputs = [self.values[value] for value in graph.outputs]
        return ir.Graph(
            inputs,
            [x for x in outputs if x is not None],
            nodes=nodes,
            initializers=weights,
            doc_string=graph.doc_string,
            name=graph.name,
            metadata_props=dict(graph.metadata_props),
        )

    def fresh(self, value: ir.Value) -> ir.Value:
        """An input or weight of an inner graph, once for both lists."""
        known = self.values.get(value)
        if known is not None:
            return known
        new = ir.Value(name=None, const_value=value.const_value)
        self.take_over(value, new)
        return new
