"""What each node of a model takes and gives, for one sample of its dimensions."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence, Set
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import onnx_ir as ir

from nanoloom.dynamic.dynamic_refusal import NotDynamic
from nanoloom.dynamic.polynomial import Dims
from nanoloom.graph.control import OPERATORS
from nanoloom.graph.data_dependent.decisions import Decisions, Way
from nanoloom.graph.data_dependent.trips import REPLACED
from nanoloom.graph.propagate import Propagation
from nanoloom.graph.types import operator_name, static_shape
from nanoloom.graph.unique_names import unique_names

FEW = 64  # elements of a constant that is looked at


@dataclass(frozen=True)
class NodeSample:
    """A value.  numbers: of a small constant of integers or truth values."""

    name: str
    shape: tuple[int, ...] | None
    is_known: bool
    numbers: np.ndarray | None = None


@dataclass(frozen=True)
class Visit:
    """A node with its inputs (None for those left out) and what became of its outputs.

    Outputs that nothing was known of have no shape.
    """

    node: ir.Node
    name: str
    operator: str
    inputs: tuple[NodeSample | None, ...]
    outputs: tuple[NodeSample, ...]


@dataclass(frozen=True)
class RecordingVisit(Propagation):
    """A walk that notes every node it comes to."""

    visits: list[Visit] = field(default_factory=list[Visit], kw_only=True)
    replaced: list[ir.Node] = field(default_factory=list[ir.Node], kw_only=True)

    def visit(self, graph: ir.Graph, node: ir.Node) -> None:
        inputs = tuple(None if x is None else seen(x) for x in node.inputs)
        made = [(x, x.name) for x in node.outputs if x.name]
        super().visit(graph, node)
        if node.meta.get(REPLACED):
            self.replaced.append(node)
        if any(x is node for x in self.replaced[-1:]):
            return  # what stands in its place is noted
        outputs = [seen(graph.initializers.get(name, x), name) for x, name in made]
        word = operator_name(node)
        expanded = word not in self.direct and word not in OPERATORS
        if expanded and node.graph is None and not any(x.is_known for x in outputs):
            return  # the nodes of its body are noted
        name = f"node {node.name} ({node.op_type})"
        visit = Visit(node, name, node.op_type, inputs, tuple(outputs))
        self.visits.append(visit)

    def counted(self, graph: ir.Graph, node: ir.Node) -> bool:
        """Whether nodes of the largest shape took a node's place, which goes."""
        found = super().counted(graph, node)
        if found:
            self.replaced.append(node)
        return found


@dataclass(frozen=True)
class Walk:
    """A walk through a graph.

    counted: nodes whose shapes depend on data, by name; others stand in their place.
    decided: by what.
    """

    visits: Sequence[Visit]
    counted: Sequence[str]
    decided: Decisions


# By the sample first; with the branches that were found not to run until then.
Walked: TypeAlias = dict[tuple[Hashable, ...], tuple[Walk, Set[str]]]


def forget_others(walked: Walked, samples: Sequence[Dims]) -> None:
    """Of the walks keep those through samples: each holds a model."""
    kept = [of_sample(sample) for sample in samples]
    for known in [known for known in walked if known[0] not in kept]:
        del walked[known]


def of_sample(sample: Dims) -> Hashable:
    return tuple(sorted(sample.items()))


class Walks:
    """The walks through a model that is bound to samples of its dimensions.

    bound: gives the model with numbers for them, which is used up.  direct: operators
    with a lowering of their own.  walked: what is known of earlier ones, which grows.
    """

    def __init__(
        self,
        bound: Callable[[Dims], ir.Model],
        direct: Set[str],
        walked: Walked | None = None,
    ) -> None:
        self.bound, self.direct = bound, direct
        self.unfit = set[str]()  # branches that do not run for one of the samples
        self._walked = {} if walked is None else walked

    def through(
        self, samples: Sequence[Dims], kept: Set[str] = frozenset()
    ) -> list[Walk]:
        """The nodes in the order of the walk, for each sample; walked once.

        kept: values that the program computes.  Raises Differs where the samples have
        different nodes.
        """
        while True:
            unfit = {*self.unfit}
            first = self._walk(samples[0], kept, None)
            others = [self._walk(s, kept, first.decided.ways) for s in samples[1:]]
            if unfit == self.unfit:
                break
        walks = [first, *others]
        if len({tuple(v.name for v in walk.visits) for walk in walks}) > 1:
            raise NotDynamic("other sizes have other nodes in the graph")
        return walks

    def _walk(self, sample: Dims, kept: Set[str], ways: Sequence[Way] | None) -> Walk:
        taken = None if ways is None else tuple(ways)
        unfit = frozenset(self.unfit)
        known = of_sample(sample), frozenset(kept), taken, unfit
        if known not in self._walked:
            model = self.bound(sample)
            root = model.graph
            decided = Decisions(is_open=True, given=taken, root=root, unfit=self.unfit)
            walk = walk_through(model, self.direct, kept, decided)
            self._walked[known] = walk, frozenset(self.unfit)
        walk, unfit = self._walked[known]
        self.unfit |= unfit
        return walk


def walk_through(
    model: ir.Model, direct: Set[str], kept: Set[str], decided: Decisions
) -> Walk:
    """The nodes of a bound model in the order of the walk, which changes it."""
    names, opsets = unique_names(model.graph), dict(model.opset_imports)
    walk = RecordingVisit(direct, opsets, names, kept=kept, decided=decided)
    walk.run(model.graph)
    counted = [f"node {node.name} ({node.op_type})" for node in walk.replaced]
    return Walk(walk.visits, counted, decided)


def seen(value: ir.Value, name: str = "") -> NodeSample:
    """A value as it is now."""
    is_typed = isinstance(value.type, ir.TensorType)
    shape = static_shape(value) if is_typed else None
    tensor = value.const_value
    numbers = None
    if tensor is not None and tensor.size <= FEW and is_counted(tensor.dtype):
        numbers = np.asarray(tensor.numpy())
    return NodeSample(name or value.name or "", shape, tensor is not None, numbers)


def is_counted(dtype: ir.DataType) -> bool:
    return dtype.is_integer() or dtype == ir.DataType.BOOL
