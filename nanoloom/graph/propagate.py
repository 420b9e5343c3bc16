"""Shapes and constants through the graph, in one forward walk.

After it every value has an element type and a static shape, what depends on constants
only is a constant, ONNX functions that have no lowering of their own are replaced by
their bodies, and conditions known now are decided.  Large results are lazy: nothing is
computed or read before somebody asks for the array.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, field

import onnx_ir as ir

from nanoloom.errors import ModelError, noting
from nanoloom.frontend.declared import Contradictions
from nanoloom.frontend.memory_claims import require_addresses
from nanoloom.graph import (
    control,
    evaluate,
    functions,
    inference,
    own_code,
    splice,
    unroll,
)
from nanoloom.graph.agreement import require_types
from nanoloom.graph.data_dependent.decisions import Decisions
from nanoloom.graph.data_dependent.dispatch import step
from nanoloom.graph.data_dependent.node_builder import MADE
from nanoloom.graph.enumerated_attributes import require_known
from nanoloom.graph.folding import agrees
from nanoloom.graph.index_checks import may_be_out_of_range
from nanoloom.graph.sequences.rules import resolve
from nanoloom.graph.types import operator_name
from nanoloom.graph.unique_names import Names
from nanoloom.graph.value_origin import remember

DEFAULT_DOMAINS = ("", "ai.onnx")


@dataclass(frozen=True)
class Propagation:
    """direct: operators with a lowering of their own (their bodies are not expanded).

    names: what is taken in the graph and its bodies.  kept: names of values that are
    computed when the program runs, even if their inputs are constants.  decided: gets
    what shapes that depend on data go by.  contradictions: gets declared shapes that
    are not what nodes make.  run_model: of one node, for constants that ONNX's
    reference cannot compute; None to leave such nodes to the program.
    """

    direct: Set[str]
    opsets: dict[str, int]
    names: Names
    kept: Set[str] = field(default=frozenset(), kw_only=True)
    decided: Decisions = field(default_factory=Decisions, kw_only=True)
    contradictions: Contradictions = field(default_factory=Contradictions, kw_only=True)
    run_model: own_code.Run | None = field(default=None, kw_only=True)

    def run(self, graph: ir.Graph) -> None:
        for node in graph:  # nodes inserted after the current one are visited too
            place = f"node {node.name} ({node.op_type})"
            made = tuple(node.outputs)
            with noting(place):
                self.visit(graph, node)
            for value in made:
                require_addresses(value, place)

    def visit(self, graph: ir.Graph, node: ir.Node) -> None:
        """Complete a node's outputs, or put something simpler in its place."""
        require_types(node, self.opsets)
        require_known(node)
        if unroll.is_rest(node):
            unroll.step(graph, node, self.names)
        elif resolve(graph, node, self.names) or self.counted(graph, node):
            return
        elif node.op_type in control.OPERATORS and node.domain in DEFAULT_DOMAINS:
            opset = self.opsets.get("", 1)
            walk = control.Control(self.run, self.names, opset, self.decided)
            made, declared = tuple(node.outputs), [x.shape for x in node.outputs]
            walk.visit(graph, node)
            if node.graph is graph:
                self.contradictions.note(made, declared)
        elif (tensors := self.constants(node)) is not None:
            make_constant(graph, node, tensors)
        elif is_passed_on(node):
            splice.substitute(graph, node, node.inputs)
        elif operator_name(node) not in self.direct:
            functions.expand(graph, node, self.opsets, self.names)

    def counted(self, graph: ir.Graph, node: ir.Node) -> bool:
        """Whether a shape depended on the data, and a number counts what is meant."""
        if operator_name(node) not in self.direct:
            return False  # its body is looked at
        opset = self.opsets.get("", 1)
        return step(graph, node, self.names, opset, self.decided)

    def constants(self, node: ir.Node) -> list[ir.TensorProtocol | None] | None:
        """The outputs if they are known now; otherwise only their shapes are set."""
        if node.op_type == "Constant" and node.domain == "":
            return [evaluate.constant_of(node)]
        foldable = self.is_foldable(node)
        declared = [x.shape for x in node.outputs]
        alike = evaluate.folded_before(node, self.opsets) if foldable else None
        if alike is not None:
            for value, tensor in zip(node.outputs, alike, strict=True):
                if tensor is not None:
                    value.shape = ir.Shape(tensor.shape.numpy())
            self.contradictions.note(node.outputs, declared)
            return alike
        try:
            if all(x is None or x.type is not None for x in node.inputs):
                inference.infer(node, self.opsets)
                self.contradictions.note(node.outputs, declared)
        except ModelError:  # inference is stricter than evaluation (Range of [1])
            tensors = evaluate.fold(node, self.opsets) if foldable else None
            if tensors is None:
                raise
            return tensors
        shape = evaluate.shape_constant(node)
        if shape is not None:
            return [shape]
        tensors = evaluate.fold(node, self.opsets) if foldable else None
        return tensors or self.computed(node)

    def computed(self, node: ir.Node) -> list[ir.TensorProtocol | None] | None:
        """The outputs of a node of constants, by its own code."""
        if self.run_model is None or operator_name(node) not in self.direct:
            return None
        if not self.is_known(node) or not own_code.is_computable(node):
            return None
        return own_code.fold(node, self.opsets, self.run_model)

    def is_foldable(self, node: ir.Node) -> bool:
        if not agrees(node, self.opsets.get("", 1)) or not self.is_known(node):
            return False
        return not may_be_out_of_range(node)

    def is_known(self, node: ir.Node) -> bool:
        """Whether a node's outputs may be constants, as its inputs are."""
        if node.domain not in DEFAULT_DOMAINS:
            return False
        if not all(x is None or known(x) for x in node.inputs):
            return False
        return not any(x.name in self.kept for x in node.outputs)


def known(value: ir.Value | None) -> bool:
    """Whether the value is a constant of the graph."""
    return value is not None and value.const_value is not None


def make_constant(
    graph: ir.Graph, node: ir.Node, tensors: Sequence[ir.TensorProtocol | None]
) -> None:
    """Remove a node whose outputs are these constants."""
    for old, tensor in zip(node.outputs, tensors, strict=False):
        if tensor is None:
            continue
        inference.require_declared_type(node, old, tensor.dtype)
        made = ir.Value(
            name=old.name,
            shape=ir.Shape(tensor.shape.numpy()),
            type=ir.TensorType(tensor.dtype),
            const_value=tensor,
        )
        made.meta.update(old.meta)
        remember(made, node)
        ir.convenience.replace_all_uses_with(old, made, replace_graph_outputs=True)
        old.name = None
        graph.register_initializer(made)
    graph.remove(node, safe=True)


def is_passed_on(node: ir.Node) -> bool:
    """Whether a node gives its input on, and no graph output needs it.

    Exporters write Concat of one value where another one is an empty list.  What is
    made for a shape that depends on data is not: its output has a count of its own.
    """
    joins_one = node.op_type == "Concat" and len(node.inputs) == 1
    return (
        (node.op_type == "Identity" or (joins_one and MADE not in node.meta))
        and node.domain in DEFAULT_DOMAINS
        and not node.outputs[0].is_graph_output()
    )
