"""A node beside its inputs, as the tables of what is known about references read it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Asked:
    """A node that a reference is asked about.

    given: its inputs by place; None for one that is left out.  opset: of the model.
    """

    node: onnx.NodeProto
    given: Sequence[Array | None]
    opset: int

    def word(self, name: str, default: str = "") -> str:
        """A text attribute."""
        found = (a.s.decode() for a in self.node.attribute if a.name == name)
        return next(found, default)

    def number(self, name: str, default: int = 0) -> int:
        """An integer attribute."""
        return next((a.i for a in self.node.attribute if a.name == name), default)

    def numbers(self, name: str) -> Sequence[int]:
        """A list of integers; empty where there is none."""
        return next((a.ints for a in self.node.attribute if a.name == name), ())

    def real(self, name: str, default: float = 0) -> float:
        """A float attribute."""
        return next((a.f for a in self.node.attribute if a.name == name), default)

    def input(self, index: int) -> Array | None:
        return self.given[index] if index < len(self.given) else None


def asked_about(node: onnx.NodeProto, values: Mapping[str, Array], opset: int) -> Asked:
    return Asked(node, [values.get(name) for name in node.input], opset)
