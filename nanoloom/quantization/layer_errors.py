"""The error that each layer adds: in floats and in integers, on the same numbers.

A layer in integers stands beside the one in floats, and reads what that reads: what
goes wrong in front of it is not counted again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import onnx_ir.passes.common as passes

from nanoloom.inspect.graph_writer import Writer
from nanoloom.inspect.references import open_reference, save
from nanoloom.quantization.candidates import Layer, candidates
from nanoloom.quantization.integer_model import Pairs, Ranges
from nanoloom.quantization.placement import behind, placement
from nanoloom.quantization.samples import Sample

Progress = Callable[[str, int, int], None]


@dataclass
class Squares:
    """Sums of squares over all samples: of differences, and of the right numbers."""

    error: float = 0.0
    size: float = 0.0

    @property
    def relative(self) -> float:
        """|got - right| / |right|, of all numbers as one vector; NaN is infinity."""
        if not math.isfinite(self.error):
            return math.inf
        if self.size == 0:
            return 0.0 if self.error == 0 else math.inf
        return math.sqrt(self.error / self.size)

    def add(self, got: np.ndarray[Any, Any], right: np.ndarray[Any, Any]) -> None:
        right = right.astype(np.float64)
        self.error += float(np.square(got.astype(np.float64) - right).sum())
        self.size += float(np.square(right).sum())


def side_by_side(
    model: ir.Model, chosen: Collection[str], ranges: Ranges
) -> tuple[ir.Model, dict[str, tuple[ir.Value, ir.Value]]]:
    """A model with both forms of each layer, and the value of each, by node."""
    made = model.clone()
    layers, _ = candidates(made.graph)
    places = placement(made.graph, chosen)
    pairs = Pairs(made.graph, places, ranges)
    reading = {reader for found in places.pairs.values() for reader in found}
    known: dict[ir.Value, ir.Value] = {}
    nodes = {node.name: node for node in made.graph}
    found: dict[str, tuple[ir.Value, ir.Value]] = {}
    for name, last in places.computed.items():
        node = nodes[name]
        copies = copied(list(behind(node, last)))
        made.graph.insert_after(producer(last), copies)
        copy = copies[0]
        if name in layers:
            pairs.weigh(Layer(copy, layers[name].axis))
        for place, value in enumerate(node.inputs):
            if value is not None and (node, place) in reading:
                if value not in known:
                    known[value] = pairs.pair(value, value, "/alone")
                copy.replace_input_with(place, known[value])
        result = copies[-1].outputs[0]
        if places.pairs.get(last):
            result = pairs.pair(last, result, f"/{name}")
        found[name] = last, result
    return made, found


def producer(value: ir.Value) -> ir.Node:
    node = value.producer()
    assert node is not None
    return node


def copied(nodes: Sequence[ir.Node]) -> list[ir.Node]:
    """The same nodes, each behind the one before, under names of their own."""
    made: list[ir.Node] = []
    for index, node in enumerate(nodes):
        inputs = list(node.inputs)
        if index:
            before = nodes[index - 1].outputs[0]
            inputs = [made[-1].outputs[0] if x is before else x for x in inputs]
        copy = ir.node(node.op_type, inputs, domain=node.domain)
        for attribute in node.attributes.values():
            copy.attributes.add(attribute)
        copy.name = f"{node.name}/in integers"
        copy.outputs[0].name = f"{node.outputs[0].name}/in integers"
        made.append(copy)
    return made


def layer_errors(
    model: ir.Model,
    chosen: Collection[str],
    ranges: Ranges,
    samples: Sequence[Sample],
    folder: Path,
    threads: int,
    progress: Progress,
) -> dict[str, float]:
    """The relative error of each layer that is computed in integers, by node."""
    made, values = side_by_side(model, chosen, ranges)
    return measured(made, values, samples, folder, threads, progress)


def measured(
    made: ir.Model,
    values: Mapping[str, tuple[ir.Value, ir.Value]],
    samples: Sequence[Sample],
    folder: Path,
    threads: int,
    progress: Progress,
) -> dict[str, float]:
    """|got - right| / |right| of pairs of values (right, got) of a model, by name."""
    write = Writer("nanoloom.squares")
    double, single = ir.DataType.DOUBLE, ir.DataType.FLOAT
    outputs: list[ir.Value] = []
    for right, got in values.values():
        right, got = (write.cast(x, single, double) for x in (right, got))
        for numbers in (write("Sub", got, right), right):
            sum_ = write("ReduceSumSquare", numbers, keepdims=0)
            sum_.dtype, sum_.shape = double, ir.Shape([])
            outputs.append(sum_)
    made.graph.extend(write.nodes)
    made.graph.outputs[:] = outputs
    passes.TopologicalSortPass()(made)
    passes.RemoveUnusedNodesPass()(made)
    run = open_reference("ort", save(made, folder), threads)
    found = {name: Squares() for name in values}
    for done, sample in enumerate(samples):
        progress("comparing layers", done, len(samples))
        sums = iter(run(sample.arrays))
        for squares in found.values():
            squares.error += float(next(sums))
            squares.size += float(next(sums))
    return {name: squares.relative for name, squares in found.items()}
