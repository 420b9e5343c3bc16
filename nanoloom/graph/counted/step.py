"""Which rule an operator has, where shapes of its inputs or outputs depend on data."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import onnx_ir as ir

from nanoloom.graph.counted import chosen, folded, gathered, reshaped, sized, unique
from nanoloom.graph.counted.count import counts_of
from nanoloom.graph.counted.decisions import Decisions
from nanoloom.graph.counted.maker import DOMAIN, MADE, Maker
from nanoloom.graph.counted.spread import OPERATORS, spread
from nanoloom.graph.naming import Names
from nanoloom.graph.types import is_static

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
    "Slice": (1, 2, 3, 4),
    "Tile": (1,),
    "TopK": (1,),
    "Unique": (0,),
}
SOURCES: Mapping[str, Rule] = {
    "Compress": chosen.compress,
    "ConstantOfShape": reshaped.constant,
    "Expand": reshaped.expand,
    "NonMaxSuppression": chosen.suppress,
    "NonZero": chosen.nonzero,
    "Range": sized.range_,
    "Reshape": reshaped.reshape,
    "Slice": sized.cut,
    "Tile": reshaped.tile,
    "TopK": chosen.top_k,
    "Unique": unique.unique,
}
RULES: Mapping[str, Rule] = {
    **SOURCES,
    **dict.fromkeys(OPERATORS, spread),
    **dict.fromkeys(folded.NEUTRAL, folded.reduce),
    "AveragePool": folded.rows,
    "BatchNormalization": folded.rows,
    "Concat": sized.concat,
    "Conv": folded.rows,
    "ConvTranspose": folded.rows,
    "CumProd": folded.cumulate,
    "CumSum": folded.cumulate,
    "Flatten": reshaped.flatten,
    "Gather": gathered.gather,
    "GatherElements": gathered.gather_elements,
    "GatherND": gathered.gather_slices,
    "Gemm": folded.gemm,
    "GlobalAveragePool": folded.rows,
    "GlobalMaxPool": folded.rows,
    "InstanceNormalization": folded.rows,
    "LogSoftmax": folded.softmax,
    "MatMul": folded.multiply,
    "MaxPool": folded.rows,
    "OneHot": sized.one_hot,
    "Pad": sized.pad,
    "RoiAlign": folded.regions,
    "ScatterElements": gathered.scatter_elements,
    "ScatterND": gathered.scatter_slices,
    "Shape": sized.shape,
    "Size": sized.size,
    "Softmax": folded.softmax,
    "Split": sized.split,
    "Squeeze": sized.squeeze,
    "Transpose": sized.transpose,
    "Unsqueeze": sized.unsqueeze,
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
    always = node.op_type == "NonMaxSuppression"  # which nobody computes before
    return always or any(x is not None and x.const_value is None for x in given)
