"""Filters without the taps that meet nothing but the border around an image, and
images without the rows behind what a single window reads.

    Conv<pads=1>(x [1, C, 1, W], w [F, C, 3, 3])
      ->  Conv<pads=[0, 1, 0, 1]>(x, w[:, :, 1:2])

The last images of a network are often smaller than its filters reach: of one pixel with
3x3 filters, or of filters whose taps are far apart.  Those taps multiply zeros only.
Neither they nor their border are read, nor kept.

    Conv<strides=3>(x [1, C, H, 5], w [F, C, 3, 3])  ->  Conv<strides=3>(x[..., :3], w)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import onnx_ir as ir

from nanoloom.graph.binary_products import steps_of
from nanoloom.graph.derived_constants import derived
from nanoloom.graph.editor import GraphEditor
from nanoloom.graph.layout_effects import is_tensor_op
from nanoloom.graph.types import is_static, shape_of
from nanoloom.graph.value_origin import KEY, Origin, numbers, origin_of
from nanoloom.graph.window_taps import Taps
from nanoloom.weights.derivations import Sliced

# Convolutions, and which input the filters are.
FILTERS = MappingProxyType({"Conv": 1, "ConvInteger": 1, "QLinearConv": 3})


def trim_filters(graph: ir.Graph) -> None:
    """Rewrite a graph of known sizes in place."""
    rewriting = TrimFilters(graph)
    for node in graph:
        if is_tensor_op(node, FILTERS.keys()):
            rewriting.visit(node)


@dataclass
class TrimFilters(GraphEditor):
    """The graph being rewritten."""

    def visit(self, node: ir.Node) -> None:
        """Cut a convolution's filters and its image, if that is all that it needs."""
        place = FILTERS[node.op_type]
        image, filters, made = node.inputs[0], node.inputs[place], node.outputs[0]
        if image is None or filters is None or not is_static(filters):
            return
        if not is_static(image) or not is_static(made) or 0 in shape_of(made):
            return
        axes = axes_of(node, shape_of(image)[2:], shape_of(filters)[2:])
        if axes is None:
            return
        few = [axis.within() for axis in axes] if is_trimmable(filters) else axes
        read = [axis.alone() for axis in few]
        if read == axes:
            return
        if few != axes:
            node.replace_input_with(place, self.within(node, filters, few))
        if read != few:
            node.replace_input_with(0, self.read(node, image, read))
        for name in ("auto_pad", "kernel_shape", "pads"):
            node.attributes.pop(name, None)
        pads = [*(x.begin for x in read), *(max(x.behind, 0) for x in read)]
        node.attributes.add(ir.AttrInt64s("pads", pads))

    def within(
        self, before: ir.Node, filters: ir.Value, axes: Sequence[Taps]
    ) -> ir.Value:
        """These taps alone of filters."""
        if filters.const_value is not None:
            return self.cut(filters, axes)
        first, last = [axis.first for axis in axes], [axis.last + 1 for axis in axes]
        return self.part(before, filters, first, last)

    def read(self, before: ir.Node, image: ir.Value, axes: Sequence[Taps]) -> ir.Value:
        """The part of an image that windows read; of bytes, before they are numbers."""
        ends, origin = [axis.size for axis in axes], origin_of(image)
        if origin is None or not scales_channels(origin):
            return self.part(before, image, [0] * len(ends), ends)
        quantized, *others = origin.inputs
        assert quantized is not None, "it dequantizes something"
        few = self.part(before, quantized, [0] * len(ends), ends)
        words, name = list(origin.attributes.values()), f"{image.name}/within"
        shape, inputs = shape_of(few), [few, *others]
        return self.add(before, origin.op, inputs, words, shape, image, name)

    def part(
        self,
        before: ir.Node,
        value: ir.Value,
        starts: Sequence[int],
        ends: Sequence[int],
    ) -> ir.Value:
        """Of a value that only a run knows what lies between these spatial places."""
        name = f"{value.name}/within"
        rows = {"starts": starts, "ends": ends, "axes": range(2, 2 + len(starts))}
        given = [
            self.constant(np.asarray(row, np.int64), f"{name}/{word}")
            for word, row in rows.items()
        ]
        sizes = (end - start for start, end in zip(starts, ends, strict=True))
        shape = *shape_of(value)[:2], *sizes
        return self.add(before, "Slice", [value, *given], [], shape, value, name)

    def cut(self, filters: ir.Value, axes: Sequence[Taps]) -> ir.Value:
        """Filters [F, C, taps...] with these taps alone, quantized ones as well."""
        starts = 0, 0, *(axis.first for axis in axes)
        wanted = *shape_of(filters)[:2], *(axis.count for axis in axes)
        sliced = Sliced(starts, wanted, (1,) * len(wanted))
        made = ir.Value(
            name=f"{filters.name}_within",
            shape=ir.Shape(wanted),
            type=filters.type,
            const_value=derived(filters, sliced),
        )
        origin = origin_of(filters)
        if origin is not None:
            quantized, *others = origin.inputs
            assert quantized is not None, "asked before"
            inputs = self.cut(quantized, axes), *others
            made.meta[KEY] = Origin(origin.op, inputs, origin.attributes)
        return self.registered(made)


def is_trimmable(filters: ir.Value) -> bool:
    """Whether filters are the model's own, or known, and made so by quantization at
    most."""
    if filters.const_value is None:
        return filters.is_graph_input()
    origin = origin_of(filters)
    if origin is None:
        return True
    quantized = origin.input(0)
    if quantized is None or not scales_channels(origin):
        return False
    return quantized.const_value is not None and origin_of(quantized) is None


def scales_channels(origin: Origin) -> bool:
    """Whether numbers were dequantized, with a scale for each channel at most."""
    scale = origin.input(1)
    if origin.op != "DequantizeLinear" or scale is None or not is_static(scale):
        return False
    return len(shape_of(scale)) <= 1 and origin.int("axis", 1) <= 1


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
