"""The graph stage: an ONNX model whose every shape is static and known.

In:  an `onnx_ir.Model` with all dimensions bound, functions of the model inlined.
Out: the same, simplified: constants folded, ONNX functions expanded, quantized
products in integers, layouts and methods of convolution chosen, reshapes out of the way
of products.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Set
from contextlib import contextmanager

import numpy as np
import onnx_ir as ir
import onnx_ir.passes.common as passes

from nanoloom.errors import DataDependent, Error
from nanoloom.frontend.declared import contradictions_of
from nanoloom.graph.append_to_cache import Pairs, append_to_caches
from nanoloom.graph.binary_products import binary_products
from nanoloom.graph.data_dependent.decisions import Decisions
from nanoloom.graph.data_dependent.publish_counts import publish
from nanoloom.graph.data_dependent.rooms import tell_of_unused
from nanoloom.graph.dynamic import require_static
from nanoloom.graph.editor import GraphEditor
from nanoloom.graph.encoder_kv_cache import keep_encoder_caches
from nanoloom.graph.flipped_filters import flip_filters
from nanoloom.graph.fold_movement_into_gather import fold_movement
from nanoloom.graph.integer_movement import move_integers
from nanoloom.graph.integer_products import integer_products
from nanoloom.graph.known_operators import require_known_operators
from nanoloom.graph.layout import channels_last
from nanoloom.graph.linear_operations import AVERAGES, reorder_linear
from nanoloom.graph.lookup_tables import compute_bytes
from nanoloom.graph.nchw_int8_conv import keep_nchw_int8
from nanoloom.graph.own_code import Run
from nanoloom.graph.patterns.rules import apply_rules
from nanoloom.graph.propagate import Propagation
from nanoloom.graph.reshape_products import (
    FOLLOW_PRODUCTS,
    JOIN_HEADS,
    SHARE_HEADS,
    SPLIT_HEADS,
    pass_reshapes,
)
from nanoloom.graph.scatter_axes import SCATTER_ALONG
from nanoloom.graph.sequences.outputs import open_outputs
from nanoloom.graph.shared_decisions import (
    SharedDecisions,
    count_in_place,
    keep_pads,
    note_rows,
)
from nanoloom.graph.sign_thresholds import threshold_sums
from nanoloom.graph.unique_names import Names, name_made, unique_names
from nanoloom.graph.winograd import of_floats, of_integers, transform_convolutions
from nanoloom.target.facts import Target

IN_FLOATS = "nanoloom.in_floats"  # of a model: why quantized products stay in floats
SIGNS = "nanoloom.signs"  # of a model: why products of signs are not counted
NOT_REWRITTEN = "nanoloom.not_rewritten"  # of a model: why a strategy leaves nodes


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
    winograd_target: Target | None = None,
    int8_target: Target | None = None,
    *,
    rewrite: Callable[[ir.Graph, int], dict[str, str]] | None = None,
    kept: Set[str] | None = None,
    caches: Pairs = (),
    starts: bool = False,
    unmoved: Pairs = (),
    alike: SharedDecisions | None = None,
    fuses: bool = False,
    run_model: Run | None = None,
) -> ir.Model:
    """Simplify a model in place.

    direct: operators that linalg lowers itself.  winograd_target: where that is faster
    here, convolutions may be computed by Winograd's method; int8_target: those of
    bytes.  rewrite: of a strategy, which wants operands to lie otherwise.  kept: values
    that sizes decide about at run time; or None.  caches, unmoved, starts: what is kept
    between calls (keep_in_place).  alike: the samples of sizes that this model is one
    of.  fuses: the target has f32 multiply-adds.  run_model: for constants that ONNX's
    reference cannot compute; without it they are computed by the program.
    """
    opsets = dict(model.opset_imports)
    names = unique_names(model.graph)
    propagate(model, direct, names, kept, alike, run_model)
    publish(model.graph, names)
    passes.RemoveUnusedNodesPass()(model)
    require_known_operators(model.graph, direct, opsets)
    require_static(model.graph)
    update_in_place(model, caches, unmoved, starts=starts)
    apply_rules(GraphEditor(model.graph), [SCATTER_ALONG])
    reorder_linear(model.graph, {"MatMul"})
    pass_reshapes(model.graph, SPLIT_HEADS, JOIN_HEADS)
    if kept is None:
        fold_movement(model.graph)
    passes.RemoveUnusedNodesPass()(model)  # what was read in two shapes
    pass_reshapes(model.graph, SHARE_HEADS)
    to_integers(model, opsets, fuses=fuses)
    convolve(model.graph, winograd_target, int8_target, alike)
    passes.RemoveUnusedNodesPass()(model)
    pass_reshapes(model.graph, FOLLOW_PRODUCTS)  # last: some come through transposes
    passes.RemoveUnusedNodesPass()(model)
    reasons = rewrite(model.graph, opsets.get("", 0)) if rewrite else {}
    model.meta[NOT_REWRITTEN] = reasons
    passes.RemoveUnusedNodesPass()(model)
    name_made(model.graph)
    return model


@contextmanager
def naming_unknown(model: ir.Model, direct: Set[str]) -> Generator[None]:
    """Operators that nobody knows come first, whatever else is wrong with a model."""
    try:
        yield
    except DataDependent:
        raise  # a call binds the inputs that decide, and asks again
    except Error:
        require_known_operators(model.graph, direct, dict(model.opset_imports))
        raise


def propagate(
    model: ir.Model,
    direct: Set[str],
    names: Names,
    kept: Set[str] | None,
    alike: SharedDecisions | None,
    run_model: Run | None,
) -> None:
    """Shapes and constants through the graph; what is given is as for `optimize`."""
    given, unfit = (alike.ways, alike.unfit) if alike else (None, ())
    contradictions = contradictions_of(model)
    is_open = kept is not None
    decided = Decisions(is_open=is_open, given=given, root=model.graph, unfit={*unfit})
    walk = Propagation(
        direct,
        dict(model.opset_imports),
        names,
        kept=kept or frozenset(),
        decided=decided,
        contradictions=contradictions,
        run_model=run_model,
    )
    with naming_unknown(model, direct):
        walk.run(model.graph)
    tell_of_unused(model.graph)
    open_outputs(model.graph, names)
    contradictions.tell()
    if alike is not None:
        alike.ways = decided.ways


def convolve(
    graph: ir.Graph,
    winograd_target: Target | None,
    int8_target: Target | None,
    alike: SharedDecisions | None,
) -> None:
    """Layouts and methods of convolutions; what is given is as for `optimize`."""
    flip_filters(graph)
    if alike is not None:
        count_in_place(graph, alike)
        note_rows(graph, alike)
    if alike is not None and alike.images:
        keep_pads(graph)
    if winograd_target is not None:
        reorder_linear(graph, AVERAGES if alike is not None else AVERAGES | {"Conv"})
    any_length = int8_target is not None and int8_target.vector.any_length
    channels_last(graph, any_length=any_length and alike is None)
    if winograd_target is not None:
        floats = of_floats(winograd_target)
        transform_convolutions(graph, winograd_target, floats, alike)
    if int8_target is not None:
        transform_convolutions(graph, int8_target, of_integers(int8_target))
        if alike is None:
            keep_nchw_int8(graph, int8_target)


def update_in_place(
    model: ir.Model, caches: Pairs, unmoved: Pairs, *, starts: bool
) -> None:
    """What is kept from one call to the next is neither copied nor given again.

    caches: inputs and outputs that extend them in place; starts: from the first row.
    unmoved: inputs, and outputs of the first call that are they.
    """
    keep_encoder_caches(model.graph, unmoved, starts=starts)
    append_to_caches(model.graph, caches, starts=starts)
    passes.RemoveUnusedNodesPass()(model)  # what took a stack of caches apart


def to_integers(model: ir.Model, opsets: dict[str, int], *, fuses: bool) -> None:
    """Quantized numbers are computed with as integers, and signs as bits."""
    move_integers(model.graph)
    compute_bytes(model.graph, opsets)
    passes.RemoveUnusedNodesPass()(model)  # products ask who reads them
    model.meta[IN_FLOATS] = integer_products(model.graph, fuses=fuses)
    model.meta[SIGNS] = binary_products(model.graph)
    if model.meta[SIGNS]:
        passes.RemoveUnusedNodesPass()(model)  # sums ask who reads them
        threshold_sums(model.graph)
