"""How long each layer takes by itself, in floats and quantized.

A layer is cut out with what it is computed with: its inputs are made up, of the shapes
that a sample gives.  Layers that are alike are measured once.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import onnx_ir.passes.common as passes

import nanoloom
from nanoloom.cache import Cache
from nanoloom.graph.quantization import only_user
from nanoloom.inspect.graph_writer import Writer
from nanoloom.inspect.references import open_reference, save
from nanoloom.inspect.timing import interleaved
from nanoloom.quantization.candidates import constant
from nanoloom.quantization.placement import LIMITS
from nanoloom.quantization.samples import Sample

Array = np.ndarray[Any, np.dtype[Any]]
Progress = Callable[[str, int, int], None]
BEHIND = LIMITS | {"Add", "QuantizeLinear"}
BUDGET = 60.0  # seconds for all layers, the largest first
SECONDS, FEWEST, MOST = 0.2, 5, 50  # of repetitions of a layer


@dataclass(frozen=True)
class Cut:
    """A layer by itself: its nodes in order, what they read, what they give."""

    nodes: tuple[ir.Node, ...]
    inputs: tuple[ir.Value, ...]
    last: ir.Value


def cut(node: ir.Node) -> Cut:
    """A node with the quantizations in front of it and what is added behind it."""
    nodes, inputs = list[ir.Node](), dict[ir.Value, None]()
    for value in node.inputs:
        if value is None or constant(value) is not None:
            continue
        maker = value.producer()
        if maker is not None and maker.op_type == "DequantizeLinear":
            if maker not in nodes:
                nodes.append(maker)
            value = maker.inputs[0]
        if value is not None and constant(value) is None:
            inputs[value] = None
    nodes.append(node)
    out = node.outputs[0]
    while (after := only_user(out)) is not None and after.op_type in BEHIND:
        if any(x is not out and constant(x) is None for x in after.inputs if x):
            break
        nodes.append(after)
        out = after.outputs[0]
        if after.op_type == "QuantizeLinear":
            break
    return Cut(tuple(nodes), tuple(inputs), out)


@dataclass
class Stopwatch:
    """Layers of two models.  known: seconds by what is alike."""

    sample: Sample
    threads: int
    cache: Cache
    folder: Path
    known: dict[str, tuple[float, float]] = field(
        default_factory=dict[str, tuple[float, float]]
    )

    def times(
        self,
        floats: ir.Model,
        quantized: ir.Model,
        names: Mapping[str, str],
        progress: Progress,
    ) -> dict[str, tuple[float, float]]:
        """Seconds in floats and quantized, of as many layers as there is time for.

        names: nodes and what they became.
        """
        pairs = {
            name: (cut(node_named(floats, name)), cut(node_named(quantized, other)))
            for name, other in names.items()
        }
        before = self.shapes(floats, [pair[0] for pair in pairs.values()])
        after = self.shapes(quantized, [pair[1] for pair in pairs.values()])
        found: dict[str, tuple[float, float]] = {}
        ordered = sorted(pairs.items(), key=lambda item: -size(item[1][0], before))
        start = time.perf_counter()
        for done, (name, (one, other)) in enumerate(ordered):
            if time.perf_counter() - start > BUDGET:
                break
            progress("timing layers", done, len(pairs))
            models = part(floats, one, before), part(quantized, other, after)
            key = "\n".join(alike(model) for model in models)
            if key not in self.known:
                self.known[key] = self.measured(*models)
            found[name] = self.known[key]
        return found

    def measured(self, one: ir.Model, other: ir.Model) -> tuple[float, float]:
        runs = [self.run(one), self.run(other)]
        length = max(sum(x.seconds[0] for x in interleaved(runs, 1)), 1e-6)
        count = max(FEWEST, min(MOST, round(SECONDS / length)))
        first, second = interleaved(runs, count)
        return first.median, second.median

    def run(self, model: ir.Model) -> Callable[[], object]:
        program = nanoloom.compile(model, threads=self.threads, cache=self.cache)
        rng = np.random.default_rng(0)
        arrays = {x.name: made_up(x.shape, x.dtype, rng) for x in program.inputs}
        return lambda: program(arrays)

    def shapes(self, model: ir.Model, cuts: Sequence[Cut]) -> dict[str, list[int]]:
        """Of all inputs of layers, by name, for the sample."""
        made = model.clone()
        values = {v.name: v for node in made.graph for v in node.outputs}
        values |= {value.name: value for value in made.graph.inputs}
        write, outputs = Writer("nanoloom.shapes"), list[ir.Value]()
        names = sorted({x.name or "" for each in cuts for x in each.inputs})
        for name in names:
            shape = write("Shape", values[name])
            shape.dtype = ir.DataType.INT64
            outputs.append(shape)
        made.graph.extend(write.nodes)
        made.graph.outputs[:] = outputs
        passes.RemoveUnusedNodesPass()(made)
        run = open_reference("ort", save(made, self.folder), self.threads)
        found = run(self.sample.arrays)
        return {n: [int(d) for d in x] for n, x in zip(names, found, strict=True)}


def size(layer: Cut, shapes: Mapping[str, Sequence[int]]) -> int:
    """A measure of a layer's work: elements that it reads, times those of weights."""
    read = sum(math.prod(shapes[x.name or ""]) for x in layer.inputs)
    held = (constant(x) for node in layer.nodes for x in node.inputs)
    return read * (1 + sum(tensor.size for tensor in held if tensor is not None))


def node_named(model: ir.Model, name: str) -> ir.Node:
    return next(node for node in model.graph if node.name == name)


def made_up(shape: Sequence[Any], dtype: np.dtype[Any], rng: Any) -> Array:
    if dtype.kind == "f":
        return rng.standard_normal(tuple(shape)).astype(dtype)
    return rng.integers(0, 100, tuple(shape)).astype(dtype)


def part(model: ir.Model, of: Cut, shapes: Mapping[str, Collection[int]]) -> ir.Model:
    """A model of one layer."""
    known: dict[ir.Value, ir.Value] = {}
    for value in of.inputs:
        made = ir.Value(name=value.name, shape=ir.Shape(shapes[value.name or ""]))
        made.dtype = value.dtype or ir.DataType.UINT8
        known[value] = made
    inputs, weights, nodes = list(known.values()), dict[str, ir.Value](), []
    for node in of.nodes:
        for value in node.inputs:
            if value is not None and value not in known:
                known[value] = weights[value.name or ""] = weight_of(value)
        nodes.append(copy_of(node, known))
    last = known[of.last]
    last.dtype = of.last.dtype
    graph = ir.Graph(
        inputs,
        [last],
        nodes=nodes,
        initializers=tuple(weights.values()),
        opset_imports=dict(model.opset_imports),
        name="layer",
    )
    return ir.Model(graph, ir_version=model.ir_version)


def weight_of(value: ir.Value) -> ir.Value:
    tensor = constant(value)
    assert tensor is not None, value.name
    return ir.Value(
        name=value.name, const_value=tensor, shape=value.shape, type=value.type
    )


def copy_of(node: ir.Node, known: dict[ir.Value, ir.Value]) -> ir.Node:
    inputs = [None if x is None else known[x] for x in node.inputs]
    made = ir.node(node.op_type, inputs, domain=node.domain, name=node.name)
    for attribute in node.attributes.values():
        made.attributes.add(attribute)
    out = made.outputs[0]
    out.name, out.dtype = node.outputs[0].name, node.outputs[0].dtype
    known[node.outputs[0]] = out
    return made


def alike(model: ir.Model) -> str:
    """All that decides about a layer's time, without names and numbers."""
    facts = [f"{x.dtype} {x.shape}" for x in model.graph.inputs]
    facts += [f"{x.dtype} {x.shape}" for x in model.graph.initializers.values()]
    for node in model.graph:
        given = sorted(f"{k}={v.value}" for k, v in node.attributes.items())
        facts.append(f"{node.op_type} {given}")
    return "; ".join(facts)
