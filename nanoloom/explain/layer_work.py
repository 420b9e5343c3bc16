"""What each layer of a model computes and moves, for shapes of its inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import onnx_ir

from nanoloom.compiler import Model, partition_model, scheduled
from nanoloom.errors import Error
from nanoloom.explain.explainable import Explainable
from nanoloom.explain.roof import Roof
from nanoloom.explain.work import counted
from nanoloom.kernels.program import Kernel, Program
from nanoloom.target.peaks import Peaks

SEVERAL = 2  # tasks: of all threads


@dataclass(frozen=True)
class LayerWork:
    """Of all kernels that are named for a layer.

    least: seconds at the measured rates of all threads, None where they are not known.
    nodes: of the model, whose operations are in them.
    """

    operations: int = 0
    bytes: int = 0
    least: float | None = None
    nodes: tuple[str, ...] = ()

    def plus(self, other: LayerWork) -> LayerWork:
        known = None not in (self.least, other.least)
        least = (self.least or 0.0) + (other.least or 0.0) if known else None
        return LayerWork(
            self.operations + other.operations,
            self.bytes + other.bytes,
            least,
            tuple(dict.fromkeys((*self.nodes, *other.nodes))),
        )


@dataclass(frozen=True)
class ModelWork:
    """layers: by name.  outputs: of each node, the names of its values."""

    layers: Mapping[str, LayerWork]
    outputs: Mapping[str, tuple[str, ...]]


NOTHING = ModelWork({}, {})


def model_work(
    program: Explainable, arrays: Mapping[str, np.ndarray], peaks: Peaks | None
) -> ModelWork:
    """NOTHING where the model has no kernels for known shapes alone."""
    shapes = {name: array.shape for name, array in arrays.items()}
    try:
        model = program.source.entry(shapes, {})
        outputs = outputs_of(model)
        made = partition_model(model, program.options, program.report)
    except Error:
        return NOTHING
    weights = sum(each.nbytes for each in made.parameters)
    roof = Roof(program.options.target, program.threads, weights, peaks)
    kernels = {name: work_of(k, program, roof) for name, k in made.kernels.items()}
    return ModelWork(by_layer(made, kernels), outputs)


def by_layer(
    made: Program, kernels: Mapping[str, LayerWork]
) -> Mapping[str, LayerWork]:
    """The work of all calls that are named for each layer."""
    found: dict[str, LayerWork] = {}
    for call in made.calls:
        own = kernels[call.kernel]
        work = LayerWork(own.operations, own.bytes, own.least, call.nodes)
        found[call.layer] = (
            found[call.layer].plus(work) if call.layer in found else work
        )
    return found


def work_of(kernel: Kernel, program: Explainable, roof: Roof) -> LayerWork:
    """Of one call."""
    operations, size = counted(kernel.nest)
    if roof.peaks is None or program.options.strategy is not None:
        return LayerWork(operations, size)
    schedule = scheduled(kernel, program.options)
    if isinstance(schedule, str):
        return LayerWork(operations, size)
    demands = roof.demands(schedule.apply(kernel.nest), SEVERAL)
    known = [each.seconds for each in demands if each.seconds is not None]
    return LayerWork(operations, size, max(known, default=None))


def outputs_of(model: Model) -> Mapping[str, tuple[str, ...]]:
    """The values of each node; of linalg there are none."""
    if not isinstance(model, onnx_ir.Model):
        return {}
    return {
        node.name or "": tuple(value.name or "" for value in node.outputs)
        for node in model.graph
    }
