"""The linalg stage: an ONNX graph with static shapes becomes one function on tensors.

    func.func @main(inputs..., parameters...) -> outputs

Every operator is `linalg.generic` (or reshapes, slices and loops around it).  Constants
with more than one element never enter the IR: each is a function argument that carries
its name, and a `Weight` beside the module says what its array is made of.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import numpy as np
import onnx_ir

from nanoloom.errors import ModelError, Unsupported, noting
from nanoloom.frontend.mapped_tensors import Region, regions_of
from nanoloom.graph.data_dependent.reductions import NEUTRAL
from nanoloom.graph.derived_constants import weight_of
from nanoloom.graph.evaluate import mapped_sources
from nanoloom.graph.operator_families import ELEMENTWISE
from nanoloom.graph.types import (
    deciding_sources,
    numpy_dtype,
    operator_name,
    shape_of,
)
from nanoloom.ir.mlir import func, ir, sign
from nanoloom.linalg.builder.builder import Builder, tensor_type
from nanoloom.linalg.builder.checks import Checks, Limits
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.tensor import Tensor, constant
from nanoloom.linalg.fitting.nodes import require_fit
from nanoloom.linalg.operators import OPERATORS
from nanoloom.linalg.parameters import Parameters, name_arguments
from nanoloom.weights.weight import Weight
from nanoloom.weights.weight import weight_of as array_weight

COMPUTED = ELEMENTWISE | NEUTRAL.keys()  # operators that compute with what they read
FEW = 16  # elements of a constant that says what a node does


@dataclass(frozen=True)
class Spec:
    """Name, shape and element type of a model's input or output."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype


@dataclass(frozen=True, eq=False)
class LinalgModule:
    """What the stage gives: arguments of @main are the inputs, then the parameters.

    checks: what @main returns behind the outputs, limits for each word of a result.
    repeats: by the functions that @main calls, which have no body in the module.
    """

    module: ir.Module
    inputs: tuple[Spec, ...]
    outputs: tuple[Spec, ...]
    parameters: tuple[Weight, ...]
    checks: tuple[tuple[Limits, ...], ...] = ()
    repeats: Mapping[str, Repetition] = field(default_factory=dict[str, "Repetition"])

    def with_bodies(self, changed: Callable[[LinalgModule], LinalgModule]) -> Self:
        """This one with the bodies of its repetitions changed."""
        made = {n: replace(x, body=changed(x.body)) for n, x in self.repeats.items()}
        return replace(self, repeats=made)


@dataclass(frozen=True)
class Moving:
    """Where a tensor of a repetition's body lies: in which operand or result of a call.

    offset: bytes into it in the first trip, and `stride` further in each other one.
    is_state: of two places by turns; in the one that a trip writes, the next one reads.
    """

    number: int
    offset: int = 0
    stride: int = 0
    is_state: bool = False


@dataclass(frozen=True, eq=False)
class Repetition:
    """A body that runs `trips` times in a row, or less often.

    @main calls it with what is carried from trip to trip and then with what it reads
    besides; the results are what is carried.  inputs, outputs: of the body's @main.
    beside: it may run at the same time as the repetition in front of it.  limit, flag:
    which carried values say how many trips there are at most, int64, and in front of
    each whether it runs, bool; None for none.
    """

    trips: int
    body: LinalgModule
    inputs: tuple[Moving, ...]
    outputs: tuple[Moving, ...]
    beside: bool = False
    limit: int | None = None
    flag: int | None = None

    @property
    def is_open(self) -> bool:
        """Whether only a run knows the number of trips."""
        return self.limit is not None or self.flag is not None

    @property
    def states(self) -> set[int]:
        """Which carried values are written whole in each trip."""
        return {moving.number for moving in self.outputs if moving.is_state}

    @property
    def sequences(self) -> set[int]:
        """Which carried values are written in parts."""
        return {moving.number for moving in self.outputs} - self.states


def spec(value: onnx_ir.Value) -> Spec:
    return Spec(value.name or "", shape_of(value), numpy_dtype(value))


@dataclass
class Lowering:
    """One model being lowered: values of the graph to tensors, parameters found."""

    graph: onnx_ir.Graph
    opsets: Mapping[str, int]
    entry: ir.Block
    tensors: dict[onnx_ir.Value, Tensor] = field(default_factory=dict)
    checks: Checks = field(default_factory=Checks)
    kept: Set[str] = frozenset()

    @cached_property
    def parameters(self) -> Parameters:
        """The weights that are arguments so far."""
        return Parameters(self.entry, self.release_all)

    def release_all(self) -> None:
        """Give back the pages of every weight file that has been read so far."""
        for region in self.mapped:
            region.release()

    @cached_property
    def mapped(self) -> list[Region]:
        """Where constants lie in files: asked for after each weight."""
        stored = [v.const_value for v in self.graph.initializers.values()]
        return regions_of(x for made in stored for x in mapped_sources(made))

    def tensor_of(self, value: onnx_ir.Value | None) -> Tensor | None:
        """What a value of the graph is here: computed before, or a constant."""
        if value is None:
            return None
        if value not in self.tensors:
            known = value.const_value
            assert known is not None, f"{value.name} is used before it is computed"
            self.tensors[value] = constant(weight_of(known, value.name or ""))
        return self.tensors[value]

    def moved_later(self, value: onnx_ir.Value | None) -> Tensor | None:
        """A value that is not moved or cut as long as nothing but a constant is."""
        found = self.tensor_of(value)
        if found is None or found.value is not None or found.size <= FEW:
            return found
        return replace(found, value=self.parameters.add(found))

    def inputs_of(self, node: onnx_ir.Node) -> tuple[Tensor | None, ...]:
        if not any(x.name in self.kept for x in node.outputs):
            return tuple(self.tensor_of(x) for x in node.inputs)
        count = 1 if node.op_type in NEUTRAL else len(node.inputs)  # axes behind it
        first = [self.tensor_of(x) for x in node.inputs[:count]]
        are_known = all(x is None or x.value is None for x in first)
        if not are_known or node.op_type not in COMPUTED:
            return tuple(self.moved_later(x) for x in node.inputs)
        made = [self.read_from_memory(x) for x in node.inputs[:count]]
        return (*made, *[self.tensor_of(x) for x in node.inputs[count:]])

    def read_from_memory(self, value: onnx_ir.Value | None) -> Tensor | None:
        """A constant whose integers are no numbers in the code.

        What is computed of a sample's would be a number, which no size says.
        """
        found = self.tensor_of(value)
        if found is None or found.dtype.kind not in "iu" or found.size > FEW:
            return found
        wide = constant(array_weight(found.array().astype(np.int64), found.name))
        made = Tensor(found.shape, wide.dtype, self.parameters.add(wide))
        return Builder(self.parameters.add).cast(made, found.dtype)

    def body(self, graph: onnx_ir.Graph, arguments: Sequence[Tensor]) -> list[Tensor]:
        """Lower a body's nodes at the insertion point; gives its outputs."""
        for formal, actual in zip(graph.inputs, arguments, strict=False):
            self.tensors[formal] = actual
        for node in graph:
            self.node(node)
        found = [self.tensor_of(value) for value in graph.outputs]
        return [x for x in found if x is not None]

    def version_of(self, domain: str) -> int:
        """The version of a domain's operators; nanoloom's are those of ONNX."""
        default = self.opsets.get("", 1)
        return default if domain == "nanoloom" else self.opsets.get(domain, 1)

    def node(self, node: onnx_ir.Node) -> None:
        lower = OPERATORS.get(operator_name(node))
        where = f"node {node.name} ({node.op_type})"
        if lower is None:
            raise Unsupported("nanoloom does not know this operator", where=where)
        outputs = list(node.outputs)
        view = Node(
            node.op_type,
            node.name or node.op_type,
            node.version or self.version_of(node.domain),
            self.inputs_of(node),
            tuple(
                shape_of(x) if x.shape is not None and x.name else () for x in outputs
            ),
            tuple(
                numpy_dtype(x) if x.dtype is not None else np.dtype(np.float32)
                for x in outputs
            ),
            tuple(bool(x.name) for x in outputs),
            dict(node.attributes),  # type: ignore[arg-type]
            self.body,
            lambda index: deciding_sources(node.inputs[index]),
        )
        with ir.Location.name(view.name), noting(where):
            require_fit(view)
            made = lower(Builder(self.parameters.add, self.checks), view)
        results = [made] if isinstance(made, Tensor) else list(made)
        for value, result in zip(outputs, results, strict=False):
            if value.name and result is not None:
                if result.shape != shape_of(value):
                    raise ModelError(
                        f"its output {value.name} has the shape {list(result.shape)}, "
                        f"the model says {list(shape_of(value))}",
                        where=where,
                    )
                assert result.dtype == numpy_dtype(value), (where, result.dtype)
                self.tensors[value] = result


def lower(
    model: onnx_ir.Model, *, checked: bool = False, kept: Set[str] | None = None
) -> LinalgModule:
    """Lower a simplified model; an MLIR context must be current.

    checked: the program looks whether run-time indices are in range.  kept: values that
    are computed when it runs, as they depend on sizes known then; None for known sizes.
    """
    graph = model.graph
    given = [v for v in graph.inputs if v.const_value is None]
    inputs = tuple(spec(v) for v in given)
    module = ir.Module.create()
    with ir.InsertionPoint(module.body):
        kinds = [tensor_type(x.shape, x.dtype) for x in inputs]
        main = func.FuncOp("main", ir.FunctionType.get(kinds, []))
        entry = main.add_entry_block()
    checks = Checks(checked, is_open=kept is not None)
    lowering = Lowering(
        graph, model.opset_imports, entry, checks=checks, kept=kept or frozenset()
    )
    for value, x, argument in zip(given, inputs, entry.arguments, strict=True):
        lowering.tensors[value] = Tensor(x.shape, x.dtype, argument, None, x.name)
    with ir.InsertionPoint(entry):
        results = lowering.body(graph, [])
        builder = Builder(lowering.parameters.add)
        words = [check.words for check in checks.made]
        values = [builder.value(x) for x in (*results, *words)]
        func.ReturnOp(values)
    sign(main, [v.type for v in values])
    outputs = tuple(
        Spec(v.name or "", x.shape, numpy_dtype(v))
        for v, x in zip(graph.outputs, results, strict=True)
    )
    weights = lowering.parameters.weights
    name_arguments(main, [x.name for x in inputs], weights)
    module.operation.verify()
    limits = tuple(check.limits for check in checks.made)
    return LinalgModule(module, inputs, outputs, weights, limits)
