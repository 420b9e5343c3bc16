"""A layer with its numbers, as a model, and what ONNX's reference says of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx

from nanoloom.inspect.references import open_reference
from nanoloom.reproduce.oml_models import Array, Layer, draw, model_of

ROOM = 1e-4  # of the largest number, that results may differ by


@dataclass(frozen=True)
class Case:
    """A layer, its numbers, its model and what that gives."""

    layer: Layer
    numbers: Mapping[str, Array]
    model: onnx.ModelProto
    wanted: Array

    @property
    def feeds(self) -> dict[str, Array]:
        return {"x": self.numbers["x"]}

    def wrong(self, got: Array) -> str:
        """What is wrong with a result; "" if nothing is."""
        exact = self.wanted.astype(np.float64)
        error = abs(got - exact).max()
        right = error <= ROOM * abs(exact).max()
        return "" if right else f"wrong result: off by {error:.2g}"


def case_of(layer: Layer, folder: Path) -> Case:
    """The layer's numbers by ONNX's reference; the model is a file in folder, too."""
    numbers = draw(layer)
    model, path = model_of(layer, numbers), folder / f"{layer.name}.onnx"
    onnx.save(model, path)
    (wanted,) = open_reference("reference", path, 1)({"x": numbers["x"]})
    return Case(layer, numbers, model, wanted)
