"""What a program does with the strings of a call before its code runs.

A step is an operator that looks into strings, or moves what such a one made.  Steps
run in Python at each call; the code takes what the last of them give.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from nanoloom.frontend.text_steps.operators import OPERATORS

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Known:
    """An array that a step reads at each call, as JSON takes it."""

    dtype: str  # numpy's, or "string"
    shape: Sequence[int]
    values: Sequence[Any]

    def array(self) -> Array:
        dtype = object if self.dtype == "string" else self.dtype
        return np.array(self.values, dtype).reshape(self.shape)


@dataclass(frozen=True)
class TextStep:
    """inputs, outputs: names of values; known: those that are constants."""

    operator: str
    attributes: Mapping[str, Any]
    inputs: Sequence[str]
    outputs: Sequence[str]
    known: Mapping[str, Known]

    @classmethod
    def of(cls, made: Mapping[str, Any]) -> TextStep:
        """From what `written` gave."""
        known = {name: Known(**array) for name, array in made["known"].items()}
        rest = {name: part for name, part in made.items() if name != "known"}
        return cls(**rest, known=known)

    def written(self) -> dict[str, Any]:
        return asdict(self)


def computed(steps: Sequence[TextStep], given: Mapping[str, Array]) -> dict[str, Array]:
    """All that steps make of the strings of a call, beside what is given."""
    arrays = dict(given)
    for step in steps:
        inputs = [
            step.known[name].array() if name in step.known else arrays[name]
            for name in step.inputs
        ]
        made = OPERATORS[step.operator](step.attributes, *inputs)
        arrays |= dict(zip(step.outputs, made, strict=False))
    return arrays
