"""A layer or a whole model with its input, and what ONNX's reference says of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx

from nanoloom.inspect.references import open_reference
from nanoloom_papers.reproduce.oml_models import Array, Layer, draw, model_of
from nanoloom_papers.reproduce.oml_whole import Whole, whole_model

ROOM = 1e-4  # of the largest number, that results may differ by


@dataclass(frozen=True)
class Case:
    """A layer, what it is fed with, its model and what that gives."""

    layer: Layer
    feeds: Mapping[str, Array]
    model: onnx.ModelProto
    wanted: Array

    def wrong(self, got: Array) -> str:
        """What is wrong with a result; "" if nothing is."""
        exact = self.wanted.astype(np.float64)
        error = abs(got - exact).max()
        right = error <= ROOM * abs(exact).max()
        return "" if right else f"wrong result: off by {error:.2g}"


def case_of(layer: Layer, folder: Path) -> Case:
    """The layer's numbers by ONNX's reference; the model is a file in folder, too."""
    numbers = draw(layer)
    return checked(layer, model_of(layer, numbers), numbers["x"], folder)


def whole_case(whole: Whole, folder: Path) -> Case:
    """The same of a whole model."""
    model, x = whole_model(whole)
    return checked(whole.layer, model, x, folder)


def checked(layer: Layer, model: onnx.ModelProto, x: Array, folder: Path) -> Case:
    """With what the reference makes of it."""
    path = folder / f"{layer.name}.onnx"
    onnx.save(model, path)
    (wanted,) = open_reference("reference", path, 1)({"x": x})
    return Case(layer, {"x": x}, model, wanted)
