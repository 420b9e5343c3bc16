"""Models with an input for each of their rooms, of which the shape counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from nanoloom.interface.interface import Interface
from nanoloom.interface.room_names import DIMENSION, room_inputs
from nanoloom.model.source import Source
from nanoloom.runtime.roomed import BOOL

if TYPE_CHECKING:
    import onnx_ir

Array = np.ndarray


class RoomedSource(Source):
    """A model with one more input for each of its rooms, of which the shape counts."""

    def __init__(self, source: Source, rooms: Sequence[str]) -> None:
        self.given, self.source, self.rooms = source.given, source, rooms
        self.conditions = source.conditions

    @property
    def digest(self) -> str:
        return f"{self.source.digest} with {self.rooms}"

    def is_hashed(self) -> bool:
        return self.source.is_hashed()

    def model(self) -> onnx_ir.Model:
        return self.source.model()

    def bound(
        self, shapes: Mapping[str, tuple[int, ...]], values: Mapping[str, Array]
    ) -> onnx_ir.Model:
        """A copy of the model for these input shapes, and rooms."""
        import onnx_ir as ir

        names = room_inputs(self.rooms)
        given = {name: shape for name, shape in shapes.items() if name not in names}
        bound = self.source.bound(given, values)
        for name in names:
            value = ir.Value(
                name=name,
                shape=ir.Shape(shapes[name]),
                type=ir.TensorType(ir.DataType.BOOL),
            )
            bound.graph.inputs.append(value)
        return bound


def dimension(room: int) -> str:
    """The name of a room's extent, which no model has."""
    return f"{DIMENSION}{room}"


def interfaces(rooms: Sequence[str]) -> list[Interface]:
    names = room_inputs(rooms)
    return [Interface(n, (dimension(i),), BOOL) for i, n in enumerate(names)]
