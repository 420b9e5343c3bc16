"""Filters without the taps that meet nothing but the border around an image.

    Conv<pads=1>(x [1, C, 1, W], w [F, C, 3, 3])
      ->  Conv<pads=[0, 1, 0, 1]>(x, w[:, :, 1:2])

The last images of a network are often smaller than its filters reach: of one pixel with
3x3 filters, or of filters whose taps are far apart.  Those taps multiply zeros only.
Neither they nor their border are read, nor kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import onnx_ir as ir

from nanoloom.graph.averaged_first import numbers
from nanoloom.graph.binary import steps_of
from nanoloom.graph.changed import changed
from nanoloom.graph.editor import GraphEditor
from nanoloom.graph.orders import is_tensor_op
from nanoloom.graph.origin import KEY, Origin, origin_of
from nanoloom.graph.types import is_static, shape_of
from nanoloom.weights.changes import Sliced

# Convolutions, and which input the filters are.
FILTERS = MappingProxyType({"Conv": 1, "ConvInteger": 1, "QLinearConv": 3})


def cut_border_taps(graph: ir.Graph) -> None:
    """Rewrite a graph of known sizes in place."""
    rewriting = BorderTaps(graph)
    for node in graph:
        if is_tensor_op(node, FILTERS.keys()):
            rewriting.visit(node)


@dataclass(frozen=True)
class Taps:
    """An axis of an image, and a filter's taps along it.

    size, result: pixels of the image and of what is made.  low: how wide the border in
    front is.  first, last: of the taps.
    """

    size: int
    result: int
    step: int
    apart: int
    low: int
    first: int
    last: int

    @property
    def count(self) -> int:
        return self.last - self.first + 1

    @property
    def begin(self) -> int:
        """The border in front of the first tap; below zero within the image."""
        return self.low - self.first * self.apart

    @property
    def behind(self) -> int:
        """The border that the last window reaches; below zero within the image."""
        reach = (self.result - 1) * self.step + (self.count - 1) * self.apart + 1
        return reach - self.size - self.begin

    def meets(self, tap: int) -> bool:
        """Whether a tap of any window is within the image."""
        first = tap * self.apart - self.low
        ahead = max(0, -(first // self.step)) * self.step  # to the first pixel behind 0
        last = first + (self.result - 1) * self.step
        return first + ahead < self.size and first + ahead <= last

    def within(self) -> Taps:
        """The same without taps that meet the border only.

        One that meets it stays where windows would begin within the image without it,
        or there were room for another window behind the last.
        """
        met = [tap for tap in range(self.first, self.last + 1) if self.meets(tap)]
        if not met:
            return self
        few = replace(self, first=met[0], last=met[-1])
        while few.begin < 0:
            few = replace(few, first=few.first - 1)
        while few.behind <= -self.step:
            few = replace(few, last=few.last + 1)
        return few


@dataclass
class BorderTaps(GraphEditor):
    """The graph being rewritten."""

    def visit(self, node: ir.Node) -> None:
        """Cut a convolution's filters, if that is all that it needs."""
        place = FILTERS[node.op_type]
        image, filters, made = node.inputs[0], node.inputs[place], node.outputs[0]
        if image is None or filters is None or not is_cuttable(filters):
            return
        if not is_static(image) or not is_static(made) or 0 in shape_of(made):
            return
        axes = axes_of(node, shape_of(image)[2:], shape_of(filters)[2:])
        if axes is None:
            return
        few = [axis.within() for axis in axes]
        if few == axes:
            return
        node.replace_input_with(place, self.cut(filters, few))
        for name in ("auto_pad", "kernel_shape", "pads"):
            node.attributes.pop(name, None)
        pads = [*(x.begin for x in few), *(max(x.behind, 0) for x in few)]
        node.attributes.add(ir.AttrInt64s("pads", pads))

    def cut(self, filters: ir.Value, axes: Sequence[Taps]) -> ir.Value:
        """Filters [F, C, taps...] with these taps alone, quantized ones as well."""
        starts = 0, 0, *(axis.first for axis in axes)
        wanted = *shape_of(filters)[:2], *(axis.count for axis in axes)
        sliced = Sliced(starts, wanted, (1,) * len(wanted))
        made = ir.Value(
            name=f"{filters.name}_within",
            shape=ir.Shape(wanted),
            type=filters.type,
            const_value=changed(filters, sliced),
        )
        origin = origin_of(filters)
        if origin is not None:
            quantized, *others = origin.inputs
            assert quantized is not None, "asked before"
            inputs = self.cut(quantized, axes), *others
            made.meta[KEY] = Origin(origin.op, inputs, origin.attributes)
        return self.registered(made)


def is_cuttable(filters: ir.Value) -> bool:
    """Whether filters are known, and nothing else but quantization made them so."""
    if filters.const_value is None or not is_static(filters):
        return False
    origin = origin_of(filters)
    if origin is None:
        return True
    quantized, scale = origin.input(0), origin.input(1)
    if origin.op != "DequantizeLinear" or quantized is None or scale is None:
        return False
    if not is_static(scale) or len(shape_of(scale)) > 1 or origin.int("axis", 1) > 1:
        return False
    return quantized.const_value is not None and origin_of(quantized) is None


def axes_of(
    node: ir.Node, sizes: Sequence[int], taps: Sequence[int]
) -> list[Taps] | None:
    """The spatial axes of a convolution; None for filters that do not fit it."""
    rank, pads = len(sizes), numbers(node, "pads")
    words = [numbers(node, x) for x in ("strides", "dilations", "kernel_shape")]
    lengths = {len(pads) / 2, *map(len, words)} - {0}
    whole = words[-1] in ([], list(taps)) and min(pads, default=0) >= 0
    if {len(taps), *lengths} != {rank} or not whole:
        return None
    found: list[Taps] = []
    results = shape_of(node.outputs[0])[2:]
    for axis, (size, result, count) in enumerate(
        zip(sizes, results, taps, strict=True)
    ):
        low, step, apart = steps_of(node, axis, size, result, count)
        found.append(Taps(size, result, step, apart, low, 0, count - 1))
    return found
