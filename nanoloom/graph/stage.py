"""The graph stage: an ONNX model whose every shape is static and known.

In:  an `onnx_ir.Model` with all dimensions bound, functions of the model inlined.
Out: the same, simplified: constants folded, ONNX functions expanded, quantized
products in integers, layouts and methods of convolution chosen, reshapes out of the way
of products.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

import numpy as np
import onnx_ir as ir
import onnx_ir.passes.common as passes

from nanoloom.graph.alike import Alike, keep_pads
from nanoloom.graph.along_sums import along_sums
from nanoloom.graph.apart import heads_apart
from nanoloom.graph.averaged_first import average_first
from nanoloom.graph.averages import integer_averages
from nanoloom.graph.binary import binary_products
from nanoloom.graph.border_taps import cut_border_taps
from nanoloom.graph.byte_planes import read_planes
from nanoloom.graph.byte_sums import sum_bytes
from nanoloom.graph.caches import Pairs, append_in_place
from nanoloom.graph.counted.decisions import Decisions
from nanoloom.graph.counted.publish import publish
from nanoloom.graph.dynamic import require_static
from nanoloom.graph.factors import move_factors
from nanoloom.graph.gates import move_gates
from nanoloom.graph.grouped import share_heads
from nanoloom.graph.integer_winograd import transform_integers
from nanoloom.graph.known import require_known
from nanoloom.graph.layout import channels_last
from nanoloom.graph.limits import limit_sums
from nanoloom.graph.moved_rows import move_rows
from nanoloom.graph.naming import Names, name_made, unique_names
from nanoloom.graph.propagate import Propagation
from nanoloom.graph.quantized import integer_products
from nanoloom.graph.requantized import keep_integers
from nanoloom.graph.reshapes import sink_reshapes
from nanoloom.graph.tables import make_tables
from nanoloom.graph.unmoved import stay_unmoved
from nanoloom.graph.winograd import transform_convolutions
from nanoloom.target.facts import Target

IN_FLOATS = "nanoloom.in_floats"  # of a model: why quantized products stay in floats
SIGNS = "nanoloom.signs"  # of a model: why products of signs are not counted
NOT_ALONG = "nanoloom.not_along"  # of a model: why right operands stay as they are


def bind_values(model: ir.Model, values: Mapping[str, np.ndarray]) -> None:
    """Turn graph inputs whose values decide about shapes into constants, in place."""
    for value in list(model.graph.inputs):
        if value.name is not None and value.name in values:
            array = values[value.name]
            made = ir.Value(
                name=value.name,
                shape=ir.Shape(array.shape),
                type=value.type,
                const_value=ir.Tensor(array, name=value.name),
            )
            ir.convenience.replace_all_uses_with(
                value, made, replace_graph_outputs=True
            )
            model.graph.inputs.remove(value)
            model.graph.register_initializer(made)


def optimize(
    model: ir.Model,
    direct: Set[str],
    faster_on: Target | None = None,
    integers_on: Target | None = None,
    *,
    along: bool = False,
    kept: Set[str] | None = None,
    caches: Pairs = (),
    starts: bool = False,
    unmoved: Pairs = (),
    alike: Alike | None = None,
    fuses: bool = False,
) -> ir.Model:
    """Simplify a model in place.  direct: operators that linalg lowers itself.

    faster_on: convolutions may be computed by Winograd's method where that is faster on
    this target.  integers_on: those of 8-bit integers, which it computes exactly.
    along: right operands of products lie along the sum, where that costs nothing.
    kept: values that are no constants, as sizes decide about them at run time; or None.
    caches, unmoved, starts: what is kept from one call to the next (keep_in_place).
    alike: the samples of sizes that this model is one of.
    fuses: the target multiplies and adds f32 with one rounding.
    """
    opsets = dict(model.opset_imports)
    names = unique_names(model.graph)
    propagate(model, direct, names, kept, alike)
    publish(model.graph, names)
    passes.RemoveUnusedNodesPass()(model)
    require_known(model.graph, direct, opsets)
    require_static(model.graph)
    keep_in_place(model, caches, unmoved, starts=starts)
    move_factors(model.graph)
    heads_apart(model.graph)
    if kept is None:
        move_rows(model.graph)
        cut_border_taps(model.graph)
    passes.RemoveUnusedNodesPass()(model)  # what was read in two shapes
    share_heads(model.graph)
    in_integers(model, opsets, fuses=fuses)
    convolve(model.graph, faster_on, integers_on, alike)
    passes.RemoveUnusedNodesPass()(model)
    sink_reshapes(model.graph)  # last: what transposes let through stands behind them
    passes.RemoveUnusedNodesPass()(model)
    model.meta[NOT_ALONG] = along_sums(model.graph, opsets.get("", 0)) if along else {}
    passes.RemoveUnusedNodesPass()(model)
    name_made(model.graph)
    return model


def propagate(
    model: ir.Model,
    direct: Set[str],
    names: Names,
    kept: Set[str] | None,
    alike: Alike | None,
) -> None:
    """Shapes and constants through the graph; what is given is as for `optimize`."""
    given = None if alike is None else alike.ways
    decided = Decisions(is_open=kept is not None, given=given)
    walk = Propagation(
        direct,
        dict(model.opset_imports),
        names,
        kept=kept or frozenset(),
        decided=decided,
    )
    walk.run(model.graph)
    if alike is not None:
        alike.ways = decided.ways


def convolve(
    graph: ir.Graph,
    faster_on: Target | None,
    integers_on: Target | None,
    alike: Alike | None,
) -> None:
    """Layouts and methods of convolutions; what is given is as for `optimize`."""
    if alike is not None and alike.images:
        keep_pads(graph)
    if alike is None and faster_on is not None:
        move_gates(graph)
    if faster_on is not None:
        average_first(graph)
    any_length = integers_on is not None and integers_on.vector.any_length
    channels_last(graph, any_length=any_length and alike is None)
    if faster_on is not None:
        transform_convolutions(graph, faster_on, alike)
    if integers_on is not None:
        transform_integers(graph, integers_on)
        if alike is None:
            read_planes(graph, integers_on)


def keep_in_place(
    model: ir.Model, caches: Pairs, unmoved: Pairs, *, starts: bool
) -> None:
    """What is kept from one call to the next is neither copied nor given again.

    caches: inputs and outputs that extend them in place; starts: from the first row.
    unmoved: inputs, and outputs of the first call that are they.
    """
    stay_unmoved(model.graph, unmoved, starts=starts)
    append_in_place(model.graph, caches, starts=starts)
    passes.RemoveUnusedNodesPass()(model)  # what took a stack of caches apart


def in_integers(model: ir.Model, opsets: dict[str, int], *, fuses: bool) -> None:
    """Quantized numbers are computed with as integers, and signs as bits."""
    keep_integers(model.graph)
    make_tables(model.graph, opsets)
    sum_bytes(model.graph, opsets)
    passes.RemoveUnusedNodesPass()(model)  # products ask who reads them
    integer_averages(model.graph)
    model.meta[IN_FLOATS] = integer_products(model.graph, fuses=fuses)
    model.meta[SIGNS] = binary_products(model.graph)
    if model.meta[SIGNS]:
        passes.RemoveUnusedNodesPass()(model)  # sums ask who reads them
        limit_sums(model.graph)
