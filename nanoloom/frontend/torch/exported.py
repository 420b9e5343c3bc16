"""An ExportedProgram of torch as an ONNX model in memory.

The model has an input for each tensor that a call brings, and an output for each that
it gives back, with those that the module changes in place: they come first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import onnx_ir as ir
import torch
from torch import fx
from torch.export import ExportedProgram
from torch.export.graph_signature import (
    ExportGraphSignature,
    InputKind,
    OutputKind,
)

from nanoloom.errors import Unsupported
from nanoloom.frontend.torch.element_types import element_type, has_numbers, numpy_view
from nanoloom.frontend.torch.functional import functional
from nanoloom.frontend.torch.graph import GraphImporter
from nanoloom.frontend.torch.imported import Imported
from nanoloom.frontend.torch.memory_order import Order, inverse, memory_order
from nanoloom.frontend.torch.pair import Pair
from nanoloom.frontend.torch.size_conditions import note_conditions
from nanoloom.frontend.torch.sizes import Sizes
from nanoloom.frontend.torch.writer import INT64, IR_VERSION, Writer


class Importer:
    """What the parts of an import share: graph, sizes, weights."""

    def __init__(
        self,
        name: str,
        names: Mapping[str, str] | None = None,
        *,
        counted: bool = False,
    ) -> None:
        """names: of dimensions, by torch's symbols.

        counted: axes are as torch counts them, not as they lie in memory.
        """
        self.writer, self.counted = Writer(name), counted
        self.sizes = Sizes(self.writer, dict(names or {}))
        self.nodes = GraphImporter(self.writer, self.sizes)
        self.imported = Imported(ir.Model(self.writer.graph, ir_version=IR_VERSION))
        self._weights: dict[tuple[object, ...], ir.Value] = {}

    def weight(self, tensor: torch.Tensor, name: str) -> Any:
        """The tensor's own memory; tensors that share all of it are one weight.

        A Pair of a complex one.
        """
        if tensor.is_complex():
            return self.pair(self.weight(torch.view_as_real(tensor), name))
        key = storage_key(tensor)
        if key not in self._weights:
            where = f"weight {name}"
            dtype = element_type(tensor.dtype, where)
            made = ir.Tensor(numpy_view(tensor, where), dtype=dtype)
            self._weights[key] = self.writer.weight(made, name)
        return self._weights[key]

    def pair(self, both: ir.Value) -> Pair:
        """What has both parts along its last axis, as two values."""
        w = self.writer
        return Pair(*(w("Gather", both, w.constant(i), axis=-1) for i in (0, 1)))

    def inputs(self, given: Sequence[tuple[fx.Node, int | str, str]]) -> None:
        """Inputs of the model: node, the argument that it is, name.

        Tensors first: a size that comes as a number is found in their shapes.
        """
        for node, place, name in given:
            fake = node.meta["val"]
            if isinstance(fake, torch.Tensor):
                value = self.tensor(fake, name)
                self.imported.inputs[str(value.name)] = place
                order = self.imported.orders.get(str(value.name))
                self.writer.place = name
                if order is not None:
                    value = self.writer("Transpose", value, perm=inverse(order))
                self.nodes.values[node] = (
                    self.pair(value) if fake.is_complex() else value
                )
        for node, place, name in given:
            fake = node.meta["val"]
            if not isinstance(fake, torch.Tensor):
                self.nodes.values[node] = self.number(fake, place, name)

    def tensor(self, fake: torch.Tensor, name: str) -> ir.Value:
        """An input, with its axes as they lie in memory."""
        if fake.layout != torch.strided:
            raise Unsupported(
                f"is a {str(fake.layout).removeprefix('torch.')} tensor",
                where=f"input {name}",
                hint="give a dense one: to_dense()",
            )
        parts, order = self.real_view(fake)
        dtype = element_type(parts.dtype, f"input {name}")
        lies = parts.permute(order) if order is not None else parts
        value = self.writer.input(name, dtype, self.sizes.dims(lies.shape))
        self.sizes.declare(value, lies.shape)
        self.note(str(value.name), fake, order)
        return value

    def note(self, name: str, fake: torch.Tensor, order: Order | None) -> None:
        """How an input or an output lies."""
        if order is not None:
            self.imported.orders[name] = order
        if fake.is_complex():
            self.imported.pairs.add(name)

    def number(self, fake: Any, place: int | str, name: str) -> Any:
        """An argument that is no tensor: a size of others, or an input of its own."""
        if isinstance(fake, torch.SymFloat):
            value = self.writer.input(name, ir.DataType.DOUBLE, [])
            self.imported.inputs[str(value.name)] = place
            return value
        if not isinstance(fake, torch.SymInt):
            return fake
        if self.sizes.knows(fake):
            return self.sizes.of(fake)
        value = self.writer.input(name, INT64, [])
        self.imported.inputs[str(value.name)] = place
        self.sizes.set(fake, value)
        return value

    def output(self, node: fx.Node, name: str) -> str:
        """An output of the model: always a value of its own, whatever else it is."""
        value = self.nodes.values[node]
        fake = node.meta["val"]
        if value is None:
            reason = "is a result that the operator's import does not compute"
            raise Unsupported(reason, where=f"output {name}")
        self.writer.place = name
        if isinstance(value, int | float | bool):
            value = self.writer.constant(value)
        if isinstance(value, Pair):
            value = stacked(self.writer, value)
        shape: Sequence[Any] = ()
        order: Order | None = None
        if isinstance(fake, torch.Tensor):
            parts, order = self.real_view(fake)
            value = self.writer.cast(value, element_type(parts.dtype, f"output {name}"))
            if order is not None:
                value = self.writer("Transpose", value, perm=order)
            shape = (parts if order is None else parts.permute(order)).shape
        made = self.writer("Identity", value)
        made.name = self.writer.name(f"{name}.out") if made.name != name else name
        made.shape = ir.Shape(self.sizes.dims(shape))
        if isinstance(fake, torch.Tensor):
            self.note(str(made.name), fake, order)
        else:
            self.imported.numbers.add(str(made.name))
        self.writer.graph.outputs.append(made)
        return str(made.name)

    def real_view(self, fake: torch.Tensor) -> tuple[torch.Tensor, Order | None]:
        """As the model has it, real and imaginary parts last, and its order."""
        order = None if self.counted else memory_order(fake)
        if not fake.is_complex():
            return fake, order
        parts = torch.view_as_real(fake.resolve_conj())
        return parts, order and (*order, fake.dim())


def stacked(w: Writer, pair: Pair) -> ir.Value:
    """Both parts along a last axis."""
    last = [w("Unsqueeze", x, w.constant([-1])) for x in (pair.re, pair.im)]
    return w("Concat", *last, axis=-1)


def storage_key(tensor: torch.Tensor) -> tuple[object, ...]:
    if not has_numbers(tensor):
        return (id(tensor),)
    start = tensor.data_ptr() if tensor.numel() else id(tensor)
    return start, tuple(tensor.shape), tensor.stride(), tensor.dtype


def import_exported(
    exported: ExportedProgram,
    names: Mapping[str, str] | None = None,
    *,
    counted: bool = False,
) -> Imported:
    """Raises Unsupported, in one sentence with the operator and its place.

    counted: axes of inputs and outputs are as torch counts them, not as they lie.
    """
    exported, graph = functional(exported)
    importer = Importer("module", names, counted=counted)
    signature = exported.graph_signature
    changed = {s.target for s in signature.output_specs if s.kind in CHANGES}
    specs = {s.arg.name: s for s in signature.input_specs if hasattr(s.arg, "name")}
    user = [s for s in signature.input_specs if s.kind == InputKind.USER_INPUT]
    numbers = {s.arg.name: i for i, s in enumerate(user)}
    given: list[tuple[fx.Node, int | str, str]] = []
    for node in graph.nodes:
        if node.op != "placeholder":
            continue
        spec = specs[node.name]
        if spec.kind == InputKind.USER_INPUT:
            if node.meta.get("val") is not None:
                given.append((node, numbers[node.name], node.name))
        elif spec.kind in HELD:
            if spec.target in changed:
                given.append((node, spec.target, spec.target))
            else:
                tensor = held(exported, spec.target)
                importer.nodes.values[node] = importer.weight(tensor, spec.target)
        elif spec.kind != InputKind.TOKEN or node.users:
            kind = spec.kind.name.lower().replace("_", " ")
            raise Unsupported(f"is a {kind}", where=f"input {node.name}")
    importer.inputs(given)
    importer.nodes.changed = {
        node for node, place, _ in given if place in changed or node.name in changed
    }
    importer.nodes.run(graph.nodes, partial(attribute, importer, exported.graph_module))
    outputs(importer, graph, signature, numbers)
    if not importer.writer.graph.outputs:
        if any(kind == "constant" for kind, _ in importer.imported.results):
            raise Unsupported(
                "the module computes no tensor: torch.export has made its results"
                " of Python's numbers once, from the example's",
                hint="give tensors as example inputs",
            )
        raise Unsupported("the module computes nothing: it returns what it is given")
    note_conditions(exported, importer.imported)
    return importer.imported


HELD = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)
CHANGES = (
    OutputKind.BUFFER_MUTATION,
    OutputKind.USER_INPUT_MUTATION,
    *(
        [OutputKind.PARAMETER_MUTATION]
        if hasattr(OutputKind, "PARAMETER_MUTATION")
        else []
    ),
)


def held(exported: ExportedProgram, target: str) -> torch.Tensor:
    """A parameter, a buffer or a constant; non-persistent buffers are constants."""
    if target in exported.state_dict:
        return exported.state_dict[target]
    return exported.constants[target]


def attribute(importer: Importer, owner: fx.GraphModule, node: fx.Node) -> Any:
    """A tensor that a graph holds as a weight; a graph inside of it as it is."""
    found: Any = owner
    for name in str(node.target).split("."):
        found = getattr(found, name)
    if isinstance(found, fx.GraphModule):
        return found
    return importer.weight(found, str(node.target))


def outputs(
    importer: Importer,
    graph: fx.Graph,
    signature: ExportGraphSignature,
    numbers: Mapping[str, int],
) -> None:
    """First what is changed in place, then results, in the module's order."""
    (made,) = (n for n in graph.nodes if n.op == "output")
    imported = importer.imported
    specs = signature.output_specs
    become: dict[Any, int | str] = {}  # what an argument has become is the argument
    for node, spec in zip(made.args[0], specs, strict=True):
        if spec.kind in CHANGES:
            place = numbers.get(spec.target, spec.target)
            if spec.kind == OutputKind.USER_INPUT_MUTATION:
                become[node] = place
            imported.mutated[place] = importer.output(node, f"{spec.target}.new")
        elif spec.kind == OutputKind.TOKEN and node is None:
            continue
        elif spec.kind != OutputKind.USER_OUTPUT:
            kind = spec.kind.name.lower().replace("_", " ")
            raise Unsupported(
                f"has a {kind}", where="module", hint="export it for inference"
            )
        elif not isinstance(node, fx.Node):
            imported.results.append(("constant", node))
        elif node in become:
            imported.results.append(("argument", become[node]))
        elif node.op == "placeholder" and node.name in numbers:
            imported.results.append(("argument", numbers[node.name]))
        else:
            imported.results.append(("output", importer.output(node, node.name)))
