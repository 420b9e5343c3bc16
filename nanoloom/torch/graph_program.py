"""A graph of torch's operators as a program, called with what the graph takes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import itemgetter
from typing import Any, TypeAlias

import torch
from torch import fx

from nanoloom.api.program import Program
from nanoloom.cache import Cache
from nanoloom.errors import InputError
from nanoloom.frontend.torch.element_types import numpy_view, torch_view
from nanoloom.frontend.torch.exported import Importer, attribute
from nanoloom.frontend.torch.imported import Imported
from nanoloom.model.source import source_of
from nanoloom.options import CompileOptions, options_with
from nanoloom.runtime.threads import thread_count
from nanoloom.torch.direct_call import direct_call
from nanoloom.torch.direct_calls import DirectCalls
from nanoloom.torch.held_weights import HeldWeights
from nanoloom.torch.memory import require_apart

Weights: TypeAlias = tuple[torch.Tensor, ...]
COPY = "aten::copy_"
KNOWN = ("threads", "precision", "cache", "checked", "exact_conv")


@dataclass(frozen=True)
class Settings:
    """What a graph is compiled with.  whole: no part may stay with torch."""

    options: CompileOptions
    cache: Cache
    threads: int
    whole: bool

    def program(self, imported: Imported) -> Program:
        options = replace(self.options, in_place=imported.in_place)
        source, threads = source_of(imported.model, self.cache), self.threads
        return Program(source, options, threads=threads, dims={}, cache=self.cache)


def settings_of(said: Mapping[str, Any], whole: bool) -> Settings:
    """Raises InputError for an option that there is not."""
    for name in said:
        if name not in KNOWN:
            hint = f"there are {', '.join(KNOWN)}"
            raise InputError(
                f"there is no option {name!r} of backend nanoloom", hint=hint
            )
    cache = Cache.of(said.get("cache"))
    about = {n: said.get(n) for n in ("precision", "checked", "exact_conv")}
    options = options_with(None, about, cache)
    return Settings(options, cache, thread_count(said.get("threads")), whole)


class NothingComputed(Exception):
    """A graph gives what it is given, and numbers: there is no program of it."""


@dataclass
class Made:
    """A program, and the weights that it holds as they were.

    direct: how it is called with tensors like those of the last calls.
    """

    program: Program
    imported: Imported
    weights: HeldWeights
    direct: DirectCalls = field(default_factory=DirectCalls)

    def holds(self, weights: Weights) -> bool:
        """Whether weights are those, unchanged."""
        return self.weights.are(weights, self.direct.same_words)


class GraphProgram:
    """A graph's program, made at the first call, when weights have numbers.

    static: the numbers of arguments that are weights.  They are part of the program as
    long as none moves and torch counts no change of them.
    """

    def __init__(
        self, graph: fx.Graph, owner: fx.GraphModule, static: Collection[int],
        settings: Settings,
    ) -> None:  # fmt: skip
        self.graph, self.owner, self.settings = graph, owner, settings
        changed = changed_inputs(graph)
        holders = [n for n in graph.nodes if n.op == "placeholder"]
        self.static = tuple(
            i for i, n in enumerate(holders) if i in static and n not in changed
        )
        self._weights = chooser(self.static)
        self._made: Made | None = None
        self._making = threading.Lock()

    def __call__(self, *args: Any) -> list[Any]:
        weights, made = self._weights(args), self._made
        if made is None or not made.holds(weights):
            made = self._make(weights)
        results = made.direct(args)
        return self._through_arrays(args, made) if results is None else results

    def _through_arrays(self, args: Sequence[Any], made: Made) -> list[Any]:
        """A call of any shapes and strides; the next one of these is a direct one."""
        imported = made.imported
        places = {name: int(place) for name, place in imported.inputs.items()}
        given = {name: args[place] for name, place in places.items()}
        tensors = {n: t for n, t in given.items() if isinstance(t, torch.Tensor)}
        arrays: dict[str, Any] = {
            n: numpy_view(imported.given(n, x), n) for n, x in tensors.items()
        }
        arrays |= {n: x for n, x in given.items() if n not in tensors}
        changed = {n: t for n, t in tensors.items() if places[n] in imported.mutated}
        if changed:
            require_apart(changed, tensors)
        outputs = made.program(arrays)
        results = [
            self._result(*each, outputs, args, made) for each in imported.results
        ]
        with torch.no_grad():
            for name, tensor in changed.items():
                target = imported.mutated[imported.inputs[name]]
                tensor.copy_(imported.result(target, torch_view(outputs[target])))
        made.direct.keep(direct_call(made.program, imported, places, arrays), args)
        return results

    def _result(
        self, kind: str, what: Any, outputs: Mapping[str, Any], args: Any, made: Made
    ) -> Any:
        if kind == "constant":
            return what
        if kind == "argument":
            return args[what]
        tensor = made.imported.result(what, torch_view(outputs[what]))
        return tensor.item() if what in made.imported.numbers else tensor

    def _make(self, weights: Weights) -> Made:
        with self._making:
            if self._made is not None and self._made.holds(weights):
                return self._made
            held = HeldWeights(weights)  # as they are before they are read
            read = dict(zip(self.static, weights, strict=True))
            imported = import_graph(self.graph, self.owner, read)
            if not imported.model.graph.outputs:
                raise NothingComputed
            program = self.settings.program(imported)
            self._made = Made(program, imported, held)
            return self._made


def chooser(places: Sequence[int]) -> Callable[[Sequence[Any]], Weights]:
    """What takes these of the arguments."""
    if len(places) > 1:
        return itemgetter(*places)
    return lambda args: tuple([args[place] for place in places])


def changed_inputs(graph: fx.Graph) -> dict[fx.Node, fx.Node]:
    """Inputs that the graph copies something to at its end, and what."""
    return {
        n.args[0]: n.args[1]
        for n in graph.nodes
        if is_copy(n) and n.args[0].op == "placeholder"
    }


def is_copy(node: fx.Node) -> bool:
    target: Any = node.target
    return node.op == "call_function" and getattr(target, "name", str)() == COPY


def import_graph(
    graph: fx.Graph, owner: fx.GraphModule, weights: Mapping[int, torch.Tensor],
    prepare: Callable[[Importer], None] | None = None,
) -> Imported:  # fmt: skip
    """The model of a graph.  weights: by the number of the argument.

    Raises Unsupported, in one sentence with the operator and its place.
    """
    importer = Importer("graph")
    if prepare is not None:
        prepare(importer)
    holders = [n for n in graph.nodes if n.op == "placeholder"]
    given: list[tuple[fx.Node, int | str, str]] = []
    for place, node in enumerate(holders):
        if place in weights:
            weight = importer.weight(weights[place].detach(), str(node.target))
            importer.nodes.values[node] = weight
        elif node.users and node not in importer.nodes.values:
            given.append((node, place, str(node.target)))
    importer.inputs(given)
    changed = changed_inputs(graph)
    importer.nodes.changed = changed
    rest = [n for n in graph.nodes if not is_copy(n)]
    importer.nodes.run(rest, partial(attribute, importer, owner))
    for node, value in changed.items():
        place = holders.index(node)
        importer.imported.mutated[place] = importer.output(value, f"{node.name}.new")
    results(importer, graph, holders, changed)
    return importer.imported


def results(
    importer: Importer, graph: fx.Graph, holders: list[fx.Node],
    changed: Mapping[fx.Node, fx.Node],
) -> None:  # fmt: skip
    (output,) = (n for n in graph.nodes if n.op == "output")
    made = output.args[0]
    for node in made if isinstance(made, list | tuple) else [made]:
        if isinstance(node, fx.Node) and is_copy(node):
            node = node.args[0]
        if not isinstance(node, fx.Node):
            importer.imported.results.append(("constant", node))
        elif node in holders:
            importer.imported.results.append(("argument", holders.index(node)))
        else:
            name = importer.output(node, node.name)
            importer.imported.results.append(("output", name))
