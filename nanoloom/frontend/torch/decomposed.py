"""An operator by what torch itself makes of it: a graph of simpler ones."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import torch  # pyright: ignore[reportMissingImports]
from torch import fx  # pyright: ignore[reportMissingImports]
from torch._decomp import (  # pyright: ignore[reportMissingImports]
    core_aten_decompositions,
    decomposition_table,
)
from torch.fx.experimental.proxy_tensor import (  # pyright: ignore[reportMissingImports]
    make_fx,
)
from torch.utils import _pytree as pytree  # pyright: ignore[reportMissingImports]

from nanoloom.frontend.torch.call import Call
from nanoloom.frontend.torch.encoder_layer import RULES
from nanoloom.frontend.torch.operators import operator_for

if TYPE_CHECKING:
    from nanoloom.frontend.torch.graph import GraphImporter


@cache
def table() -> dict[Any, Any]:
    return {**decomposition_table, **core_aten_decompositions(), **RULES}


def decomposed(call: Call, importer: GraphImporter) -> Any:
    """The values of a node's decomposition; None where torch has none."""
    target: Any = call.node.target
    if not isinstance(target, torch._ops.OpOverload):
        return None
    rule = table().get(target)
    composite = torch._C.DispatchKey.CompositeImplicitAutograd
    if rule is None and not target.has_kernel_for_dispatch_key(composite):
        return None
    flat, spec = pytree.tree_flatten((call.node.args, dict(call.node.kwargs)))
    places = [i for i, x in enumerate(flat) if isinstance(x, fx.Node)]
    examples = [flat[i].meta["val"] for i in places]

    def run(*given: Any) -> Any:
        filled = list(flat)
        for place, value in zip(places, given, strict=True):
            filled[place] = value
        args, kwargs = pytree.tree_unflatten(filled, spec)
        return (rule or target.decompose)(*args, **kwargs)

    with torch.no_grad():
        graph = traced(run, examples, target)
    if graph is None:
        return None
    return inlined(graph, [importer.values[flat[i]] for i in places], importer)


def traced(run: Any, examples: list[Any], target: Any) -> fx.Graph | None:
    """None where the decomposition is the operator again, or needs numbers."""
    own = {k: v for k, v in table().items() if operator_for(k) is None}
    try:
        graph = make_fx(run, decomposition_table=own, pre_dispatch=target in RULES)(*examples).graph
    except Exception:  # noqa: BLE001 - whatever a rule of torch raises
        return None
    calls = [n.target for n in graph.nodes if n.op == "call_function"]
    return None if target in calls else graph


def inlined(graph: fx.Graph, given: list[Any], importer: GraphImporter) -> Any:
    """The nodes of a graph, imported in place of the node that they make up."""
    place, values = importer.writer.place, iter(given)
    outer = dict(importer.values)
    for node in graph.nodes:
        importer.writer.place = place
        if node.op == "placeholder":
            importer.values[node] = next(values)
        elif node.op == "call_function":
            importer.values[node] = importer._value(node)
        elif node.op == "output":
            made = node.args[0]
            found = pytree.tree_map(
                lambda x: importer.values[x] if isinstance(x, fx.Node) else x, made
            )
            importer.values = outer
            return found
    raise AssertionError("a graph without an output")
