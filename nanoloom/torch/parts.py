"""A graph with operators that have no place here: those stay with torch, reported."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Sequence
from typing import Any

import onnx_ir as ir
import torch
from torch import fx
from torch._ops import HigherOrderOperator
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

from nanoloom.errors import Error, InputError, ModelWarning, Unsupported
from nanoloom.frontend.torch.complex_numbers import REAL, is_complex
from nanoloom.frontend.torch.element_types import ELEMENT_TYPES
from nanoloom.frontend.torch.exported import Importer
from nanoloom.frontend.torch.graph import where
from nanoloom.frontend.torch.pair import Pair
from nanoloom.torch.graph_program import (
    GraphProgram,
    NothingComputed,
    Settings,
    import_graph,
    is_copy,
)

Run = Callable[..., Any]


def compiled_parts(
    traced: fx.GraphModule, static: Collection[int], settings: Settings
) -> Run:
    """The graph's program; where operators are refused, programs of what is between.

    Raises Unsupported for the first of them if no part may stay with torch.
    """
    refused = refusals(traced, static)
    if not refused:
        whole = GraphProgram(traced.graph, traced, static, settings)
        return Guarded(whole, traced, settings.whole)
    if settings.whole:
        raise next(iter(refused.values()))
    refused = graphs_inside(traced) | refused
    for node, error in refused.items():
        report(error, bytes_across(node))
    return divided(traced, static, settings, set(refused))


class Guarded:
    """A program; torch runs its graph instead where it cannot be compiled after all."""

    def __init__(
        self, program: GraphProgram, graph: fx.GraphModule, whole: bool
    ) -> None:
        self.program, self.graph, self.whole = program, graph, whole
        self.run: Run = program

    def __call__(self, *args: Any) -> Any:
        try:
            return self.run(*args)
        except NothingComputed:
            self.run = self.graph.forward
            return self.run(*args)
        except Error as error:
            asked = isinstance(error, InputError)  # the arguments are to blame
            if asked or self.whole or self.run is not self.program:
                raise
            holders = [n for n in self.graph.graph.nodes if n.op == "placeholder"]
            (output,) = (n for n in self.graph.graph.nodes if n.op == "output")
            each = [*holders, *output.all_input_nodes]
            report(error, sum(byte_size(n) for n in each))
            self.run = self.graph.forward
            return self.run(*args)


def report(error: Error, size: int) -> None:
    """A warning: what stays with torch, why, and how many bytes go there and back."""
    told = error.reason
    message = f"{error.where or 'a graph'}: {told}; torch runs it, on {size:,} bytes"
    warnings.warn(message, ModelWarning, stacklevel=2)


def refusals(
    traced: fx.GraphModule, static: Collection[int] = ()
) -> dict[fx.Node, Unsupported]:
    """The operators that cannot be imported, found by importing without numbers.

    What a refused one would have given is an input to those behind it.  static: the
    numbers of weights, which may be complex.
    """
    found: dict[fx.Node, Unsupported] = {}
    holders = [n for n in traced.graph.nodes if n.op == "placeholder"]

    def prepare(importer: Importer) -> None:
        for weight in (holders[i] for i in static):
            if is_complex(weight.meta.get("val")):
                importer.nodes.values[weight] = stand_in(importer, weight)
        call = importer.nodes.call

        def noted(node: fx.Node) -> None:
            try:
                call(node)
            except Unsupported as error:
                found[node] = error
                importer.nodes.values[node] = stand_in(importer, node)

        importer.nodes.call = noted  # type: ignore[method-assign]

    try:
        import_graph(traced.graph, traced, {}, prepare)
    except Unsupported as error:  # an input or an output: nothing can be taken
        nodes = [n for n in traced.graph.nodes if n.op == "call_function"]
        return {n: found.get(n, refusal(n, error)) for n in nodes}
    return found


def graphs_inside(traced: fx.GraphModule) -> dict[fx.Node, Unsupported]:
    """Conditions and loops: a part that is divided from others cannot be given them."""
    reason = "has a graph inside, and other operators stay with torch"
    return {
        n: Unsupported(reason, where=where(n))
        for n in traced.graph.nodes
        if isinstance(n.target, HigherOrderOperator)
    }


def refusal(node: fx.Node, error: Unsupported) -> Unsupported:
    return Unsupported(error.reason, where=f"{where(node)}, {error.where}")


def stand_in(importer: Importer, node: fx.Node) -> Any:
    """Inputs of the shapes that a node gives."""
    value = node.meta.get("val")
    several = isinstance(value, tuple | list)
    made = [fresh(importer, node, each) for each in (value if several else [value])]
    return tuple(made) if several else made[0]


def fresh(importer: Importer, node: fx.Node, value: Any) -> Any:
    if isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool):
        return number(importer, node, value)
    if not isinstance(value, torch.Tensor):
        return value
    if is_complex(value):
        real = torch.empty([1] * value.dim(), dtype=REAL[value.dtype], device="meta")
        return Pair(*(fresh(importer, node, real) for _ in range(2)))
    shape = [f"d{i}" for i in range(value.dim())]
    dtype = ELEMENT_TYPES.get(value.dtype, ir.DataType.FLOAT)  # readers refuse others
    return importer.writer.input(f"{node.name}.stand_in", dtype, shape)


def number(
    importer: Importer,
    node: fx.Node,
    value: torch.SymInt | torch.SymFloat | torch.SymBool,
) -> Any:
    """An input of one number, for what is computed with it."""
    dtype = next(made for kind, made in SCALARS.items() if isinstance(value, kind))
    made = importer.writer.input(f"{node.name}.stand_in", dtype, [])
    if isinstance(value, torch.SymInt) and not importer.sizes.knows(value):
        importer.sizes.set(value, made)
    return made


SCALARS = {
    torch.SymInt: ir.DataType.INT64,
    torch.SymFloat: ir.DataType.DOUBLE,
    torch.SymBool: ir.DataType.BOOL,
}


def bytes_across(node: fx.Node) -> int:
    """Of what goes to torch and what comes back, for the sizes that torch traced."""
    return sum(byte_size(n) for n in (node, *node.all_input_nodes))


def byte_size(node: fx.Node) -> int:
    value = node.meta.get("val")
    total = 0
    for each in value if isinstance(value, tuple | list) else [value]:
        if isinstance(each, torch.Tensor):
            count = each.element_size()
            for size in each.shape:
                hint = size if isinstance(size, int) else size.node.hint
                count *= int(hint or 1)
            total += count
    return total


class Supported(OperatorSupportBase):
    def __init__(self, refused: Collection[fx.Node]) -> None:
        self.refused = {n.name for n in refused}

    def is_node_supported(self, submodules: Any, node: fx.Node) -> bool:
        del submodules
        return (
            node.op == "call_function"
            and node.name not in self.refused
            and not is_copy(node)
        )


def divided(
    traced: fx.GraphModule, static: Collection[int], settings: Settings,
    refused: Collection[fx.Node],
) -> Run:  # fmt: skip
    """The graph with its taken parts as modules, each of which is a program."""
    holders = [n for n in traced.graph.nodes if n.op == "placeholder"]
    weights = {holders[i].name for i in static}
    parts = CapabilityBasedPartitioner(
        traced, Supported(refused), allows_single_node_partition=False
    )
    fused = parts.fuse_partitions(parts.propose_partitions())
    for node in fused.graph.nodes:
        if node.op != "call_module":
            continue
        inside = getattr(fused, str(node.target))
        own = [i for i, n in enumerate(node.args) if n.name in weights]
        program = GraphProgram(inside.graph, inside, own, settings)
        setattr(fused, str(node.target), Part(Guarded(program, inside, False), inside))
    fused.recompile()
    return fused.forward


class Part(torch.nn.Module):
    """A program in the place of a module."""

    def __init__(self, run: Run, inside: fx.GraphModule) -> None:
        super().__init__()
        self.run = run
        (output,) = (n for n in inside.graph.nodes if n.op == "output")
        self.single = not isinstance(output.args[0], list | tuple)

    def forward(self, *args: Any) -> Any:
        made: Sequence[Any] = self.run(*args)
        return made[0] if self.single and isinstance(made, list) else made
