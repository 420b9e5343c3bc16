"""Why a model does not compile: every reason at once, by a compilation that goes on.

The graph stage and the linalg stage run as they do for the compiler, but a refusal is
noted and a stand-in takes the place of what the node would have given.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import onnx_ir
import onnx_ir.passes.common as passes

from nanoloom.errors import DataDependent, Error, ModelError
from nanoloom.frontend.declared import contradictions_of
from nanoloom.frontend.inputs import InputSpec, input_specs, random_inputs
from nanoloom.frontend.problems import Problem, problems
from nanoloom.frontend.symbolic_dims import bind
from nanoloom.graph.dynamic import first_dynamic, lost
from nanoloom.graph.layout import channels_last
from nanoloom.graph.propagate import Propagation
from nanoloom.graph.sequences.outputs import open_outputs
from nanoloom.graph.stage import bind_values
from nanoloom.graph.types import is_static, operator_name, shape_of
from nanoloom.graph.unique_names import nested, unique_names
from nanoloom.ir import mlir
from nanoloom.linalg.builder.builder import tensor_type
from nanoloom.linalg.builder.tensor import Tensor
from nanoloom.linalg.operators import OPERATORS
from nanoloom.linalg.stage import Lowering, spec

PLACE = re.compile(r"(?:.*: )?node (?P<node>.*) \((?P<operator>[^()]*)\)")
HINT = "export the model without it"
MOST_ROUNDS = 4  # of finding inputs whose values decide about shapes


class Unreachable(Error):
    """A node that cannot be looked at because of what was refused before it."""


@dataclass
class Diagnostics:
    """What was refused so far: each node once.

    deciding: inputs whose values must be known, so that shapes are.
    """

    found: dict[str, Problem] = field(default_factory=dict[str, Problem])
    deciding: dict[str, None] = field(default_factory=dict[str, None])

    def add(self, node: onnx_ir.Node, error: Error) -> None:
        """Note why a node is refused (or one inside of it, which the error names)."""
        if isinstance(error, Unreachable):
            return
        if isinstance(error, DataDependent) and error.inputs:
            self.deciding |= dict.fromkeys(error.inputs)
            return
        place = PLACE.fullmatch(error.where)
        name, operator = node.name or node.op_type, node.op_type
        if place is not None:
            name, operator = place["node"], place["operator"]
        hint = error.hint or HINT
        self.found.setdefault(name, Problem(name, error.reason, hint, operator))


def diagnose(
    model: onnx_ir.Model, dims: Mapping[str, int]
) -> tuple[list[Problem], tuple[str, ...]]:
    """All problems of a model for these dimensions, and the inputs that decide shapes.

    model: as `frontend.onnx.load` returns it; it stays as it is.
    Raises InputError for dimensions without a number, ModelError for unfit ones.
    """
    also = [pair for name in OPERATORS for pair in domains_and_types(name)]
    known = problems(model, also)
    if any(not problem.operator for problem in known):
        return known, ()  # inputs or outputs that are no tensors
    deciding: dict[str, None] = {}
    found = Diagnostics()
    for _ in range(MOST_ROUNDS):
        bound = bind(model, dims)
        bind_values(bound, some_values(bound, deciding))
        found = dry_run(bound, {problem.node for problem in known})
        if found.deciding.keys() <= deciding.keys():
            break
        deciding |= found.deciding
    return [*known, *found.found.values()], tuple(deciding)


def domains_and_types(name: str) -> list[tuple[str, str]]:
    """The inverse of `graph.types.operator_name`."""
    domain, _, op_type = name.rpartition(".")
    return [(x, op_type) for x in ((domain,) if domain else ("", "nanoloom"))]


def some_values(model: onnx_ir.Model, names: Collection[str]) -> dict[str, np.ndarray]:
    """The values that `nanoloom run` would make up for inputs that decide shapes."""
    specs = [InputSpec(x.name, x.shape, x.dtype) for x in input_specs(model)]
    return random_inputs([x for x in specs if x.name in names])


def dry_run(model: onnx_ir.Model, known: Collection[str]) -> Diagnostics:
    """Compile as far as linalg, past every refusal.  known: nodes refused already."""
    found = Diagnostics()
    names = unique_names(model.graph)
    opsets = dict(model.opset_imports)
    diagnosed = contradictions_of(model)
    walk = Shapes(OPERATORS.keys(), opsets, names, found, contradictions=diagnosed)
    walk.run(model.graph)
    open_outputs(model.graph, names)
    passes.RemoveUnusedNodesPass()(model)
    dynamic(model.graph, found)
    if first_dynamic(model.graph) is None and not found.found:
        channels_last(model.graph)
    lower(model, found)
    for name in known:
        found.found.pop(name, None)
    return found


@dataclass(frozen=True)
class Shapes(Propagation):
    """The graph stage's walk, which notes a refusal and goes on."""

    refusals: Diagnostics
    branching: list[onnx_ir.Node] = field(default_factory=list[onnx_ir.Node])

    def visit(self, graph: onnx_ir.Graph, node: onnx_ir.Node) -> None:
        within = len(self.branching)
        if node.op_type == "If":
            self.branching.append(node)
        try:
            super().visit(graph, node)
        except Error as error:
            if isinstance(error, ModelError) and within:
                raise  # the other branch may do
            self.refusals.add(node, error)
            for value in node.outputs:  # what the exporter wrote may be as wrong
                value.shape = None
        finally:
            del self.branching[within:]


def dynamic(graph: onnx_ir.Graph, found: Diagnostics) -> None:
    """Note the nodes where a shape gets lost; what follows them is not to blame."""
    for node in nested(graph):
        unknown = [v for v in node.outputs if v.name and used(v) and not is_static(v)]
        reached = all(x is None or is_static(x) for x in node.inputs)
        if unknown and reached and node.name not in found.found:
            hint = "export the model with a fixed size there"
            found.add(node, lost(node, unknown[0], hint))


def used(value: onnx_ir.Value) -> bool:
    return bool(value.uses()) or value.is_graph_output()


@dataclass
class DryLowering(Lowering):
    """The linalg stage, which notes a refusal and puts a stand-in for the result."""

    refusals: Diagnostics = field(default_factory=Diagnostics)

    def tensor_of(self, value: onnx_ir.Value | None) -> Tensor | None:
        if value is not None and value not in self.tensors and not value.const_value:
            raise Unreachable("its input was not computed")
        return super().tensor_of(value)

    def node(self, node: onnx_ir.Node) -> None:
        try:
            if operator_name(node) in OPERATORS and not all(map(settled, node.outputs)):
                raise Unreachable("the shape of its output is not known")
            super().node(node)
        except Error as error:
            self.refusals.add(node, error)
            for value in node.outputs:
                self.stand_in(value)

    def stand_in(self, value: onnx_ir.Value) -> None:
        """A tensor of the right type, so that what follows can be looked at."""
        if not value.name or not is_static(value):
            return
        try:
            x = spec(value)
        except Error:
            return  # a type that nothing can be computed on: it was refused just now
        if min(x.shape, default=0) < 0:
            return
        kind = tensor_type(x.shape, x.dtype)
        made = mlir.tensor.empty(kind.shape, kind.element_type)
        self.tensors[value] = Tensor(x.shape, x.dtype, made, None, x.name)


def settled(value: onnx_ir.Value) -> bool:
    return not value.name or not used(value) or is_static(value)


def lower(model: onnx_ir.Model, found: Diagnostics) -> None:
    """Lower all that can be reached; the IR is thrown away."""
    with mlir.context():
        module = mlir.ir.Module.create()
        with mlir.ir.InsertionPoint(module.body):
            main = mlir.func.FuncOp("main", mlir.ir.FunctionType.get([], []))
            entry = main.add_entry_block()
        lowering = DryLowering(model.graph, model.opset_imports, entry, refusals=found)
        with mlir.ir.InsertionPoint(entry):
            for value in model.graph.inputs:
                if value.const_value is None:
                    take_input(lowering, value, found)
            for node in model.graph:
                lowering.node(node)


def take_input(lowering: DryLowering, value: onnx_ir.Value, found: Diagnostics) -> None:
    """Note an input of a type that is not computed on; a stand-in for any other."""
    try:
        shape_of(value)
        spec(value)
    except Error as error:
        name = f"input {value.name}"
        found.found[name] = Problem(name, error.reason, error.hint or HINT)
        return
    lowering.stand_in(value)


def diagnosed(found: Collection[Problem]) -> list[tuple[Problem, list[str]]]:
    """Problems of one kind together: the first, and the names of all their nodes."""
    kinds: dict[Problem, list[str]] = {}
    for problem in found:
        kinds.setdefault(replace(problem, node=""), []).append(problem.node)
    return list(kinds.items())
