"""What each node of a model takes and gives, for one sample of its dimensions."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from nanoloom.graph.control import OPERATORS
from nanoloom.graph.naming import unique_names
from nanoloom.graph.propagate import Propagation
from nanoloom.graph.types import is_static, operator_name, shape_of
from nanoloom.sizes.differs import Differs
from nanoloom.sizes.size import Dims

FEW = 64  # elements of a constant that is looked at


@dataclass(frozen=True)
class Seen:
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
    inputs: tuple[Seen | None, ...]
    outputs: tuple[Seen, ...]


@dataclass(frozen=True)
class Watching(Propagation):
    """A walk that notes every node it comes to."""

    visits: list[Visit] = field(default_factory=list[Visit], kw_only=True)

    def visit(self, graph: ir.Graph, node: ir.Node) -> None:
        inputs = tuple(None if x is None else seen(x) for x in node.inputs)
        made = [(x, x.name) for x in node.outputs if x.name]
        super().visit(graph, node)
        outputs = [seen(graph.initializers.get(name, x), name) for x, name in made]
        expanded = operator_name(node) not in {*self.direct, *OPERATORS}
        if expanded and node.graph is None and not any(x.is_known for x in outputs):
            return  # the nodes of its body are noted
        name = f"node {node.name} ({node.op_type})"
        visit = Visit(node, name, node.op_type, inputs, tuple(outputs))
        self.visits.append(visit)

    def counted(self, graph: ir.Graph, node: ir.Node) -> bool:
        """Sizes that depend on data stand beside known ones only."""
        if super().counted(graph, node):
            where = f"node {node.name} ({node.op_type})"
            raise Differs(f"{where}: a shape depends on the data")
        return False


class Walks:
    """The walks through a model that is bound to samples of its dimensions.

    bound: gives the model with numbers for them, which is used up.  direct: operators
    with a lowering of their own.
    """

    def __init__(self, bound: Callable[[Dims], ir.Model], direct: Set[str]) -> None:
        self.bound, self.direct = bound, direct
        self._walked: dict[tuple[tuple[str, int], ...], list[Visit]] = {}

    def through(self, samples: Sequence[Dims]) -> list[list[Visit]]:
        """The nodes in the order of the walk, for each sample; walked once.

        Raises Differs where the samples have different nodes.
        """
        rows = [self._visits(sample) for sample in samples]
        if len({tuple(v.name for v in row) for row in rows}) > 1:
            raise Differs("its nodes")
        return rows

    def _visits(self, sample: Dims) -> list[Visit]:
        known = tuple(sorted(sample.items()))
        if known not in self._walked:
            self._walked[known] = visits_of(self.bound(sample), self.direct)
        return self._walked[known]


def visits_of(model: ir.Model, direct: Set[str]) -> list[Visit]:
    """The nodes of a bound model in the order of the walk, which changes it."""
    walk = Watching(direct, dict(model.opset_imports), unique_names(model.graph))
    walk.run(model.graph)
    return walk.visits


def seen(value: ir.Value, name: str = "") -> Seen:
    """A value as it is now."""
    shape = shape_of(value) if is_tensor(value) and is_static(value) else None
    tensor = value.const_value
    numbers = None
    if tensor is not None and tensor.size <= FEW and is_counted(tensor.dtype):
        numbers = np.asarray(tensor.numpy())
    return Seen(name or value.name or "", shape, tensor is not None, numbers)


def is_tensor(value: ir.Value) -> bool:
    return value.type is None or isinstance(value.type, ir.TensorType)


def is_counted(dtype: ir.DataType) -> bool:
    return dtype.is_integer() or dtype == ir.DataType.BOOL
