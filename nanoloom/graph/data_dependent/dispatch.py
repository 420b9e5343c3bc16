"""Which rule an operator has, where shapes of its inputs or outputs depend on data."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import onnx_ir as ir

from nanoloom.graph.data_dependent import (
    gather_scatter,
    ranges,
    recurrences,
    reductions,
    reshape,
    resizes,
    selection,
    shape_operators,
    unique,
)
from nanoloom.graph.data_dependent.count import counts_of
from nanoloom.graph.data_dependent.decisions import Decisions
from nanoloom.graph.data_dependent.elementwise import spread
from nanoloom.graph.data_dependent.node_builder import DOMAIN, MADE, Maker
from nanoloom.graph.operator_families import ELEMENTWISE
from nanoloom.graph.types import is_static
from nanoloom.graph.unique_names import Names

Rule = Callable[[Maker], "bool | None"]

# Inputs that decide how large an output is, where sizes come from.
DECIDING: Mapping[str, tuple[int, ...]] = {
    "Compress": (1,),
    "ConstantOfShape": (0,),
    "Expand": (1,),
    "NonMaxSuppression": (0, 1, 2, 3, 4),
    "NonZero": (0,),
    "Range": (0, 1, 2),
    "Reshape": (1,),
    "Resize": (2, 3),
    "Slice": (1, 2, 3, 4),
    "Tile": (1,),
    "TopK": (1,),
    "Unique": (0,),
}
SOURCES: Mapping[str, Rule] = {
    "Compress": selection.compress,
    "ConstantOfShape": reshape.constant,
    "Expand": reshape.expand,
    "NonMaxSuppression": selection.suppress,
    "NonZero": selection.nonzero,
    "Range": ranges.range_,
    "Reshape": reshape.reshape,
    "Resize": resizes.resize,
    "Slice": shape_operators.cut,
    "Tile": reshape.tile,
    "TopK": selection.top_k,
    "Unique": unique.unique,
}
RULES: Mapping[str, Rule] = {
    **SOURCES,
    **dict.fromkeys(ELEMENTWISE, spread),
    **dict.fromkeys(reductions.NEUTRAL, reductions.reduce),
    "AveragePool": reductions.rows,
    "BatchNormalization": reductions.rows,
    "Concat": shape_operators.concat,
    "Conv": reductions.rows,
    "ConvTranspose": reductions.rows,
    "CumProd": reductions.cumulate,
    "CumSum": reductions.cumulate,
    "Flatten": reshape.flatten,
    "Gather": gather_scatter.gather,
    "GatherElements": gather_scatter.gather_elements,
    "GatherND": gather_scatter.gather_slices,
    "Gemm": reductions.gemm,
    "GRU": recurrences.recur,
    "GlobalAveragePool": reductions.rows,
    "GlobalMaxPool": reductions.rows,
    "InstanceNormalization": reductions.rows,
    "LSTM": recurrences.recur,
    "LogSoftmax": reductions.softmax,
    "MatMul": reductions.multiply,
    "MaxPool": reductions.rows,
    "OneHot": shape_operators.one_hot,
    "Pad": shape_operators.pad,
    "RNN": recurrences.recur,
    "RoiAlign": reductions.regions,
    "ScatterElements": gather_scatter.scatter_elements,
    "ScatterND": gather_scatter.scatter_slices,
    "Shape": shape_operators.shape,
    "Size": shape_operators.size,
    "Softmax": reductions.softmax,
    "Split": shape_operators.split,
    "Squeeze": shape_operators.squeeze,
    "Transpose": shape_operators.transpose,
    "Unsqueeze": shape_operators.unsqueeze,
}


def step(
    graph: ir.Graph, node: ir.Node, names: Names, opset: int, decided: Decisions
) -> bool:
    """Put nodes of known shapes in a node's place; whether that was done.

    decided: gets what the rules go by.  All inputs are of known shapes, as far as they
    have any.  Raises DataDependent where that cannot be done, and a shape depends on
    the data.
    """
    if node.meta.get(MADE) or node.domain not in ("", "ai.onnx", DOMAIN):
        return False
    given = [x for x in node.inputs if x is not None]
    reached = any(counts_of(x) for x in given)
    if not reached and not is_source(node):
        return False
    if not all(is_static(x) for x in given):
        return False
    deciding = DECIDING.get(node.op_type, tuple(range(len(node.inputs))))
    maker = Maker(graph, node, names, opset, deciding, decided)
    rule = RULES.get(node.op_type) if node.domain != DOMAIN else None
    if rule is None:
        raise maker.refused("it takes no input whose shape depends on the data")
    return rule(maker) is not False


def is_source(node: ir.Node) -> bool:
    """Whether a size may come from a node: not all that decides about it is known."""
    if node.domain not in ("", "ai.onnx"):
        return False
    deciding = [i for i in DECIDING.get(node.op_type, ()) if i < len(node.inputs)]
    given = [node.inputs[i] for i in deciding]
    # Neither has code of its own, whatever is known of it.
    always = node.op_type in ("Compress", "NonMaxSuppression")
    return always or any(x is not None and x.const_value is None for x in given)
