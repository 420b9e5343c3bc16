"""An operator by what torch itself makes of it: a graph of simpler ones."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import torch
from sympy import Eq, Ne
from torch import fx
from torch._C._functorch import is_functorch_wrapped_tensor
from torch._decomp import (
    core_aten_decompositions,
    decomposition_table,
)
from torch._guards import TracingContext
from torch._subclasses.fake_tensor import FakeTensor
from torch._subclasses.functional_tensor import (
    FunctionalTensorMode,
    dispatch_functionalize,
)
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree
from torch.utils._sympy.functions import Mod, PythonMod

from nanoloom.errors import Unsupported
from nanoloom.frontend.torch import (
    bags,
    creation,
    divisors,
    encoder_layer,
    float_bits,
    fractional_pools,
    histograms,
    linear_systems,
    matrix_factors,
    prefixes,
    ranked,
    recurrent_cells,
    reflections,
    scattered,
    segments,
    singular_values,
    spectrograms,
    strided,
)
from nanoloom.frontend.torch.call import Call, is_mutation
from nanoloom.frontend.torch.kept_sizes import kept_sizes
from nanoloom.frontend.torch.memory_order import is_dense
from nanoloom.frontend.torch.operators import operator_for

if TYPE_CHECKING:
    from nanoloom.frontend.torch.graph import GraphImporter


RULES = (
    encoder_layer.RULES | ranked.RULES | prefixes.RULES | bags.RULES
    | matrix_factors.RULES | linear_systems.RULES | scattered.RULES
    | strided.RULES | divisors.RULES | float_bits.RULES | recurrent_cells.RULES
    | spectrograms.RULES | histograms.RULES | segments.RULES
    | reflections.RULES | singular_values.RULES | fractional_pools.RULES
    | creation.RULES
)  # fmt: skip


PARTS = (Mod, PythonMod)


@cache
def table() -> dict[Any, Any]:
    return {**decomposition_table, **core_aten_decompositions(), **RULES}


def rule_for(target: Any) -> Any:
    """How torch computes an operator with others; None where it has none."""
    if target.namespace == "prims":
        return getattr(target, "impl_aten", None)
    if target.namespace == "quantized_decomposed":  # where it comes from, it is loaded
        module = import_module("torch.ao.quantization.fx._decomposed")
        return getattr(module, target.name().partition("::")[2].replace(".", "_"), None)
    if rule := table().get(target):
        return rule
    composite = torch._C.DispatchKey.CompositeImplicitAutograd
    return target.decompose if target.has_kernel_for_dispatch_key(composite) else None


def decomposed(call: Call, importer: GraphImporter) -> Any:
    """The values of a node's decomposition; None where torch has none."""
    target: Any = call.node.target
    if not isinstance(target, torch._ops.OpOverload) or target in importer.inside:
        return None
    if is_mutation(call.node) or (rule := rule_for(target)) is None:
        return None
    given = own_lists((call.node.args, dict(call.node.kwargs)))
    flat, spec = pytree.tree_flatten(given)
    places = [i for i, x in enumerate(flat) if isinstance(x, fx.Node)]
    examples = [plain(flat[i].meta["val"]) for i in places]

    def run(*given: Any) -> Any:
        filled = list(flat)
        for place, value in zip(places, given, strict=True):
            filled[place] = value
        args, kwargs = pytree.tree_unflatten(filled, spec)
        return rule(*args, **kwargs)

    traced = traced_rule(run, examples, target)
    if traced is None:
        return None
    importer.inside.append(target)
    try:
        given = [importer.values[flat[i]] for i in places]
        return inlined(traced, given, importer)
    finally:
        importer.inside.pop()


def own_lists(given: Any) -> Any:
    """The same with lists that may be changed, as rules of torch do."""
    if isinstance(given, list | tuple):
        made = [own_lists(x) for x in given]
        return tuple(made) if isinstance(given, tuple) else made
    return given


def plain(example: Any) -> Any:
    """The same in the order of its axes: what a rule computes is of no strides."""
    if not isinstance(example, FakeTensor) or is_dense(example, range(example.dim())):
        return example
    with example.fake_mode:
        return torch.empty(example.shape, dtype=example.dtype)


def traced_rule(run: Any, examples: list[Any], target: Any) -> fx.GraphModule | None:
    """None where the rule is the operator again, needs numbers, or draws some."""
    whole = target in RULES  # in operators that keep their meaning
    try:
        with kept_sizes(examples) as asked, torch.no_grad():
            made = make_fx(run, pre_dispatch=whole)(*examples)
            if any(map(is_mutation, made.graph.nodes)):  # of what it has made itself
                functional = dispatch_functionalize(run, FunctionalTensorMode())
                made = make_fx(functional)(*examples)
        require_any_size(asked, target)
    except Unsupported:  # a rule of ours says why
        raise
    except Exception:  # noqa: BLE001 - whatever a rule of torch raises
        return None
    calls = [n.target for n in made.graph.nodes if n.op == "call_function"]
    again = target in calls and not whole  # of another kind, where the rule is ours
    drawn = [x for x in calls if is_random(x) and operator_for(x) is None]
    return None if again or drawn else made  # one that is known refuses its own


def require_any_size(guards: list[Any], target: Any) -> None:
    """Raise Unsupported where a rule has looked at open sizes, and is for some of them.

    guards: what it has found of them.  Dynamo compiles again where one does not hold.
    """
    if TracingContext.try_get() is not None:
        return
    for guard in guards:
        is_one = isinstance(guard, Eq) or (isinstance(guard, Ne) and guard.has(*PARTS))
        if is_one:
            reason = f"torch makes other operators of {target} only where {guard}"
            raise Unsupported(reason, where="module", hint="give it fixed sizes")


def is_random(target: Any) -> bool:
    return torch.Tag.nondeterministic_seeded in getattr(target, "tags", ())


def storage(node: fx.Node) -> int | None:
    """The memory that a node's tensor lies in; None for what is no tensor, and for one
    as a transform (vmap, grad) sees it."""
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor) or is_functorch_wrapped_tensor(value):
        return None
    return value.untyped_storage()._cdata


def inlined(made: fx.GraphModule, given: list[Any], importer: GraphImporter) -> Any:
    """The nodes of a graph, imported in place of the node that they make up."""
    place, values = importer.writer.place, iter(given)
    own: dict[fx.Node, Any] = {}
    outer, importer.values = importer.values, own
    try:
        for node in made.graph.nodes:
            importer.writer.place = place
            if node.op == "placeholder":
                own[node] = next(values)
            elif node.op == "get_attr":
                held = getattr(made, str(node.target))
                is_graph = isinstance(held, fx.GraphModule)
                own[node] = held if is_graph else importer.constant(held)
            elif node.op == "call_function":
                own[node] = importer.value(node)
        (output,) = (n for n in made.graph.nodes if n.op == "output")
        return pytree.tree_map(
            lambda x: own[x] if isinstance(x, fx.Node) else x, output.args[0]
        )
    finally:
        importer.values = outer
