"""A model with QuantizeLinear and DequantizeLinear around what integers compute.

Activations are uint8 with a zero point, one scale a tensor; weights int8 without, one
scale a channel; a bias is int32 in units of both, so that it is added to the sums.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir
import onnx_ir.passes.common as passes

from nanoloom.graph.layout_effects import is_tensor_op
from nanoloom.graph.quantization import only_user
from nanoloom.quantization.candidates import Layer, candidates, constant, weights_of
from nanoloom.quantization.placement import Placement, placement

MOST_WEIGHT, MOST_BYTE = 127, 255
MOST_SUM = 2**31 - 1
QUANTIZE, DEQUANTIZE = "QuantizeLinear", "DequantizeLinear"
SMALLEST = float(np.finfo(np.float32).tiny)


@dataclass(frozen=True)
class Range:
    """The least and the largest number of a value, as seen on samples."""

    least: float
    most: float

    def parameters(self) -> tuple[np.float32, np.uint8]:
        """Scale and zero point, such that 0 is a whole step."""
        low, high = min(self.least, 0.0), max(self.most, 0.0)
        scale = np.float32((high - low) / MOST_BYTE)
        if scale < SMALLEST:
            return np.float32(1), np.uint8(0)
        zero = np.clip(np.rint(-low / np.float64(scale)), 0, MOST_BYTE)
        return scale, np.uint8(zero)


Ranges = Mapping[str, Range]


def integer_model(model: ir.Model, chosen: Collection[str], ranges: Ranges) -> ir.Model:
    """A copy in which the layers with these names are computed in integers.

    ranges: of values by name.
    """
    made = model.clone()
    layers, _ = candidates(made.graph)
    places = placement(made.graph, chosen)
    writer = Pairs(made.graph, places, ranges)
    for name in chosen:
        writer.weigh(layers[name])
    for value, readers in places.pairs.items():
        if readers:
            source = writer.unlimited(value)
            floats = writer.pair(value, source)
            for node, place in readers:
                node.replace_input_with(place, floats)
    passes.RemoveUnusedNodesPass()(made)
    return made


@dataclass
class Pairs:
    """The graph being rewritten."""

    graph: ir.Graph
    places: Placement
    ranges: Ranges
    weights: dict[tuple[str, int], tuple[ir.Value, np.ndarray]] = field(
        default_factory=dict[tuple[str, int], tuple[ir.Value, np.ndarray]]
    )

    def parameters(self, value: ir.Value) -> tuple[np.float32, np.uint8]:
        source = self.places.source(value)
        return self.ranges[source.name or ""].parameters()

    def pair(self, value: ir.Value, source: ir.Value, word: str = "") -> ir.Value:
        """Quantize numbers as those of a value, and dequantize them again.

        source: which numbers.  word: in the names of the nodes.
        """
        name = value.name or ""
        scale, zero = self.parameters(value)
        constants = [
            self.constant(f"{name}/scale", np.array(scale)),
            self.constant(f"{name}/zero_point", np.array(zero)),
        ]
        bytes_ = self.node(QUANTIZE, name + word, [source, *constants], {})
        floats = self.node(DEQUANTIZE, name + word, [bytes_, *constants], {})
        first, second = bytes_.producer(), floats.producer()
        assert first is not None and second is not None
        maker = source.producer()
        if maker is None:
            self.graph.insert_before(self.graph[0], [first, second])
        else:
            self.graph.insert_after(maker, [first, second])
        return floats

    def weigh(self, layer: Layer) -> None:
        """Put 8-bit numbers in the place of a layer's weight, 32-bit ones for bias.

        Its input is the value in floats still.
        """
        name = layer.weight.name or ""
        known = self.weights.get((name, layer.axis))
        if known is None:
            known = self.weight(layer, f"{name}/{layer.axis}" if layer.axis else name)
            self.weights[name, layer.axis] = known
        value, scales = known
        x, bias = layer.node.inputs[0], layer.bias
        assert x is not None
        layer.node.replace_input_with(1, value)
        if bias is not None:
            self.whole_bias(layer, bias, self.parameters(x)[0] * scales)

    def weight(self, layer: Layer, name: str) -> tuple[ir.Value, np.ndarray]:
        whole, scales = symmetric(weights_of(layer), layer.axis)
        inputs = [
            self.constant(f"{name}/int8", whole),
            self.constant(f"{name}/scale", scales),
            self.constant(f"{name}/zero_point", np.zeros(scales.shape, np.int8)),
        ]
        value = self.node(DEQUANTIZE, name, inputs, {"axis": layer.axis})
        self.first(value)
        return value, scales

    def whole_bias(self, layer: Layer, bias: ir.Value, scales: np.ndarray) -> None:
        """A bias in steps of the sums, unless one of them has too many."""
        known = constant(bias)
        assert known is not None
        array = known.numpy().reshape(-1).astype(np.float64)
        scales = scales.astype(np.float32)
        steps = np.rint(array / scales)
        if not (np.abs(steps) <= MOST_SUM).all():
            return
        name = f"{layer.name}/bias"
        inputs = [
            self.constant(f"{name}/int32", steps.astype(np.int32)),
            self.constant(f"{name}/scale", scales),
            self.constant(f"{name}/zero_point", np.zeros(scales.shape, np.int32)),
        ]
        value = self.node(DEQUANTIZE, name, inputs, {"axis": 0})
        self.first(value)
        layer.node.replace_input_with(2, value)

    def node(
        self, op: str, name: str, inputs: list[ir.Value], attributes: dict[str, int]
    ) -> ir.Value:
        made = ir.node(op, inputs, attributes, name=f"{name}/{op}")
        out = made.outputs[0]
        out.name, out.shape = f"{name}/{op}/output", inputs[0].shape
        out.dtype = ir.DataType.UINT8 if op == QUANTIZE else ir.DataType.FLOAT
        return out

    def first(self, value: ir.Value) -> None:
        """Place what gives a weight in front of all: several layers may share it."""
        maker = value.producer()
        assert maker is not None
        self.graph.insert_before(self.graph[0], [maker])

    def unlimited(self, value: ir.Value) -> ir.Value:
        """What a Clip limits, where 8 bits end no later: they saturate, too."""
        node = value.producer()
        if node is None or not is_tensor_op(node, {"Clip"}) or value.is_graph_output():
            return value
        source, readers = node.inputs[0], self.places.pairs[value]
        if source is None or only_user(source) is not node:
            return value
        limits = [clip_limit(node, place) for place in (1, 2)]
        if len(list(value.uses())) != len(readers) or None in limits:
            return value  # somebody reads the floats
        scale, zero = self.parameters(value)
        steps = [np.rint(x / np.float64(scale)) for x in limits if x is not None]
        saturated = steps[0] + int(zero) <= 0 and steps[1] + int(zero) >= MOST_BYTE
        return source if saturated else value

    def constant(self, name: str, array: np.ndarray) -> ir.Value:
        if name in self.graph.initializers:
            return self.graph.initializers[name]
        value = ir.Value(name=name, const_value=ir.tensor(array, name=name))
        value.shape = ir.Shape(array.shape)
        value.dtype = ir.DataType.from_numpy(array.dtype)
        self.graph.register_initializer(value)
        return value


def symmetric(weight: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """Whole numbers from -127 to 127, and what one is worth in each channel."""
    others = tuple(each for each in range(weight.ndim) if each != axis)
    largest = np.abs(weight).max(axis=others).astype(np.float64)
    scales = (largest / MOST_WEIGHT).astype(np.float32)
    scales = np.where(scales < SMALLEST, np.float32(1), scales)
    shape = [-1 if each == axis else 1 for each in range(weight.ndim)]
    steps = np.rint(weight / scales.reshape(shape))
    return np.clip(steps, -MOST_WEIGHT, MOST_WEIGHT).astype(np.int8), scales


def clip_limit(node: ir.Node, place: int) -> float | None:
    """A limit of a Clip, infinite where it has none; None where it is not known."""
    value = node.inputs[place] if len(node.inputs) > place else None
    if value is None:
        return float("-inf") if place == 1 else float("inf")
    known = constant(value)
    return None if known is None else float(known.numpy().reshape(-1)[0])
