"""The first layer that differs: every value on the way compared, a few at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx_ir
import onnx_ir.passes.common as passes

from nanoloom.graph.types import COMPUTED_TYPES, is_static, shape_of
from nanoloom.inspect.differences import Difference, compare
from nanoloom.inspect.references import disturbed, open_reference, save

Array = np.ndarray[Any, np.dtype[Any]]
Arrays = Mapping[str, Array]
Ours = Callable[[onnx_ir.Model, Arrays], Mapping[str, Array]]
GROUP_BYTES = 64 << 20  # of the values that are looked at together
GROUP_VALUES = 48


@dataclass(frozen=True)
class Layer:
    """A value that was compared, and the node that makes it."""

    node: str
    operator: str
    difference: Difference


@dataclass(frozen=True)
class Judge:
    """What layers are compared with, and how ours are computed.

    kind: of the reference, see references.NAMES.
    """

    kind: str
    ours: Ours
    threads: int
    folder: Path

    def layers(self, model: onnx_ir.Model, inputs: Arrays) -> Iterator[Layer]:
        """Every value of a bound model in order, a group at a time.

        model: its inputs have static shapes; it stays as it is.
        """
        model = model.clone()
        passes.ShapeInferencePass()(model)
        makers = {v.name: n for n in model.graph for v in n.outputs if v.name}
        for names in groups(model):
            for found in self.differences(with_outputs(model, names), names, inputs):
                node = makers[found.name]
                yield Layer(node.name or node.op_type, node.op_type, found)

    def differences(
        self, part: onnx_ir.Model, names: Sequence[str], inputs: Arrays
    ) -> list[Difference]:
        """The outputs of a part of the model; names: of its outputs."""
        ours = self.ours(part, inputs)
        with TemporaryDirectory(dir=self.folder) as scratch:
            folder = Path(scratch)
            run = open_reference(self.kind, save(part, folder), self.threads)
            wanted = run(inputs)
            others = disturbed(self.kind, part, folder, self.threads, inputs)
        return [
            compare(name, ours[name], wanted[index], [other[index] for other in others])
            for index, name in enumerate(names)
        ]


def groups(model: onnx_ir.Model) -> Iterator[list[str]]:
    """The names of all values that can be compared, in order, in small groups."""
    names, total = list[str](), 0
    for value in comparable(model):
        size = value.dtype.itemsize * count(value) if value.dtype else 0
        if names and (total + size > GROUP_BYTES or len(names) >= GROUP_VALUES):
            yield names
            names, total = [], 0
        names.append(value.name or "")
        total += int(size)
    if names:
        yield names


def comparable(model: onnx_ir.Model) -> Iterator[onnx_ir.Value]:
    """What the graph's nodes give: tensors of types that are computed on."""
    for node in model.graph:
        if node.op_type == "Constant":
            continue
        for value in node.outputs:
            used = bool(value.uses()) or value.is_graph_output()
            if value.name and used and value.dtype in COMPUTED_TYPES:
                yield value


def count(value: onnx_ir.Value) -> int:
    """The number of elements; a guess where the shape is not known."""
    guess = GROUP_BYTES // 64
    return int(np.prod(shape_of(value), dtype=np.int64)) if is_static(value) else guess


def with_outputs(model: onnx_ir.Model, names: Sequence[str]) -> onnx_ir.Model:
    """A copy whose outputs are these values, without the nodes behind them."""
    made = model.clone()
    values = {v.name: v for node in made.graph for v in node.outputs}
    made.graph.outputs.clear()
    made.graph.outputs.extend(values[name] for name in names)
    passes.RemoveUnusedNodesPass()(made)
    return made
