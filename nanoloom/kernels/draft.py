"""A call of a program that is put together, before its kernel is made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from nanoloom.fusion.constants_to_arguments import Arguments
from nanoloom.ir.mlir import ir
from nanoloom.memory.calls import Place, Storage
from nanoloom.weights.chunked_conversion import Array
from nanoloom.weights.derivations import Coefficients
from nanoloom.weights.weight import Weight

FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


@dataclass(frozen=True)
class Draft:
    """A call whose kernel is not made yet.

    name, root: of the kernel.  outline: makes it, with these numbers as arguments.
    form: its text without `numbers`, the constants that may be arguments.  nodes: of
    the model, whose operations are in it.
    """

    name: str
    root: str
    layer: str
    outline: Callable[[Arguments], ir.Module]
    inputs: tuple[Place, ...]
    results: tuple[Place, ...]
    form: str
    numbers: tuple[ir.Attribute, ...]
    nodes: tuple[str, ...] = ()

    @property
    def constants(self) -> tuple[bool, ...]:
        """Which inputs are parameters."""
        return tuple(p.storage is Storage.PARAMETER for p in self.inputs)


def known_numbers(
    parameters: Sequence[Weight], places: Sequence[Place]
) -> tuple[Array | None, ...]:
    """Those that code is made of, of each input of a kernel; None of other inputs."""

    def numbers(place: Place) -> Array | None:
        if place.storage is not Storage.PARAMETER:
            return None
        weight = parameters[place.index]
        known = any(isinstance(change, Coefficients) for change in weight.changes)
        return weight.array() if known and weight.dtype in FLOATS else None

    return tuple(map(numbers, places))
