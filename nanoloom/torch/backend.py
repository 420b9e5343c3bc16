"""torch.compile(model, backend="nanoloom"): graphs of Dynamo, for inference."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx
from torch._C._functorch import is_functorch_wrapped_tensor
from torch._dynamo.backends.common import aot_autograd
from torch._guards import TracingContext
from torch._subclasses.fake_tensor import FakeTensor, unset_fake_temporarily
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.traceback import preserve_node_meta

from nanoloom.errors import Unsupported
from nanoloom.frontend.torch.call import is_mutation
from nanoloom.frontend.torch.decomposed import storage
from nanoloom.frontend.torch.effect_tokens import remove_tokens
from nanoloom.torch.graph_program import Settings, settings_of
from nanoloom.torch.memory import SharedMemory, shared_as_traced
from nanoloom.torch.parts import byte_size, compiled_parts, report
from nanoloom.torch.result_views import with_views

Run = Callable[..., Any]
STATIC = "_dynamo_static_input_type"
AUTOCAST = (
    torch.amp.autocast_mode._enter_autocast,
    torch.amp.autocast_mode._exit_autocast,
)
TRAINING = Unsupported(
    "the graph would be trained: a parameter or an input asks for a gradient",
    where="torch.compile",
    hint="call it under torch.no_grad() or torch.inference_mode(), or freeze the"
    " module with module.requires_grad_(False)",
)


def nanoloom(graph: fx.GraphModule, inputs: Sequence[Any], **said: Any) -> Run:
    """The backend.  said: what `options=` gives: threads, precision, cache.

    Raises Unsupported for a graph that is trained; with fullgraph=True also for an
    operator that has no place here, which otherwise stays with torch, with a warning.
    """
    settings = settings_of(said.get("options") or said, whole=is_whole())
    holders = [n for n in graph.graph.nodes if n.op == "placeholder"]
    fakes = [fake_of(n, given) for n, given in zip(holders, inputs, strict=True)]
    if not (torch.is_grad_enabled() and any(map(asks_gradient, fakes))):
        return made(graph, inputs, fakes, settings)
    if is_trained(graph):
        raise TRAINING
    with torch.no_grad():  # as Dynamo calls it: it asks for the mode at each call
        return torch.no_grad()(made(graph, inputs, fakes, settings))


def made(
    graph: fx.GraphModule, inputs: Sequence[Any], fakes: Sequence[Any],
    settings: Settings,
) -> Run:  # fmt: skip
    holders = [n for n in graph.graph.nodes if n.op == "placeholder"]
    static = {i for i, n in enumerate(holders) if is_static(n)}
    traced = traced_before_autograd(graph, fakes)
    if traced is not None and is_plain(traced):
        return compiled_parts(traced, static, settings)
    if traced is not None and (shared := shared_as_traced(traced)) is not None:
        if settings.whole:
            raise shared
        given = [n for n in traced.graph.nodes if n.op == "placeholder"]
        report(shared, sum(map(byte_size, given)))
        return graph.forward
    run = behind_autograd(graph, inputs, settings)
    return run if settings.whole else Apart(run, graph)


class Apart:
    """A program for arguments that lie apart; torch runs its graph for others.

    Where none shared memory while a graph was traced, Dynamo does not look later.
    """

    def __init__(self, run: Run, graph: fx.GraphModule) -> None:
        self.run, self.graph = run, graph

    def __call__(self, *args: Any) -> Any:
        try:
            return self.run(*args)
        except SharedMemory as error:
            given = [x for x in args if isinstance(x, torch.Tensor)]
            report(error, sum(x.numel() * x.element_size() for x in given))
            return self.graph(*args)


def is_whole() -> bool:
    """Whether the user asked for one graph: fullgraph=True."""
    from torch._dynamo.symbolic_convert import InstructionTranslator

    try:
        return bool(InstructionTranslator.current_tx().one_graph)
    except AttributeError:  # called by hand
        return False


def fake_of(node: fx.Node, given: Any) -> Any:
    """What Dynamo knows of an input: shapes as symbols, no numbers."""
    return node.meta.get("example_value", given)


def asks_gradient(given: Any) -> bool:
    return isinstance(given, torch.Tensor) and given.requires_grad


def is_trained(graph: fx.GraphModule) -> bool:
    """Whether a result asks for a gradient, as none does that no_grad() is around."""
    (output,) = (n for n in graph.graph.nodes if n.op == "output")
    made = [n for n in output.all_input_nodes if n.op != "placeholder"]
    return any(asks_gradient(n.meta.get("example_value")) for n in made)


def is_static(node: fx.Node) -> bool:
    """Whether an input is a parameter or a buffer of a module."""
    if STATIC in (node.meta.get("tensor_dict") or {}):
        return True
    return isinstance(node.meta.get("example_value"), torch.nn.Parameter)


def traced_before_autograd(
    graph: fx.GraphModule, fakes: Sequence[Any]
) -> fx.GraphModule | None:
    """The graph in operators that keep their meaning (linear, attention, norms).

    None under autocast, whose casts AOTAutograd alone sees, and where torch cannot.
    """
    # That of the graph's values: the context already has one for what comes behind.
    mode = next((x.fake_mode for x in fakes if isinstance(x, FakeTensor)), None)
    if mode is None or torch.is_autocast_enabled("cpu"):
        return None

    def run(*given: Any) -> Any:
        return fx.Interpreter(graph).run(*given)

    try:
        with mode, torch.no_grad(), preserve_node_meta():
            traced = make_fx(run, pre_dispatch=True)(*fakes)
    except Exception:  # noqa: BLE001 - of a checkpoint; AOTAutograd says what is wrong
        return None
    for node in list(traced.graph.nodes):
        if node.target is torch._C._set_grad_enabled:  # no part is trained
            traced.graph.erase_node(node)
    return traced


def is_plain(traced: fx.GraphModule) -> bool:
    """Whether nothing is changed in place, and no result shares memory with another
    tensor: AOTAutograd knows what to do about both."""
    nodes = traced.graph.nodes
    apart = any(is_mutation(n) or is_region(traced, n) for n in nodes)
    return not apart and not shares(traced)


def is_region(owner: fx.GraphModule, node: fx.Node) -> bool:
    """Whether a node is a graph inside, begins or ends a region of autocast, or is a
    tensor as a transform (vmap, grad, jvp) sees it, which AOTAutograd takes away."""
    inside, made = node.op == "get_attr", node.meta.get("val")
    held = getattr(owner, str(node.target), None) if inside else made
    if isinstance(held, torch.Tensor) and is_functorch_wrapped_tensor(held):
        return True
    if not inside:
        return node.target in AUTOCAST
    return isinstance(held, fx.GraphModule | FakeTensor)


def shares(traced: fx.GraphModule) -> bool:
    """Whether a result is, or lies in, the memory of an input or of another result."""
    holders = [n for n in traced.graph.nodes if n.op == "placeholder"]
    taken = {storage(n) for n in holders} - {None}
    (output,) = (n for n in traced.graph.nodes if n.op == "output")
    for node in output.all_input_nodes:
        found = storage(node)
        if found is not None and found in taken:
            return True
        taken.add(found)
    return False


def behind_autograd(
    graph: fx.GraphModule, inputs: Sequence[Any], settings: Settings
) -> Run:
    """The graph as AOTAutograd makes it: nothing in place but copies at the end."""

    def compiled(made: fx.GraphModule, given: Sequence[Any]) -> Run:
        del given
        remove_tokens(made.graph)
        context = TracingContext.try_get()
        facts = context.fw_metadata if context is not None else None
        static = set(facts.static_input_indices) if facts is not None else set[int]()
        with unset_fake_temporarily():  # tensors that the graph holds have numbers
            return with_views(made, lambda x: compiled_parts(x, static, settings))

    def refused(made: fx.GraphModule, given: Sequence[Any]) -> Run:
        raise TRAINING

    backend = aot_autograd(
        fw_compiler=refused,
        inference_compiler=compiled,
        keep_inference_input_mutations=True,
    )
    return backend(graph, inputs)
