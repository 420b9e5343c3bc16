"""A node of the graph as an operator lowering sees it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from nanoloom.errors import DataDependent, ModelError, Unsupported
from nanoloom.linalg.builder.tensor import Array, Tensor

Bodies = Callable[[ir.Graph, Sequence[Tensor]], list[Tensor]]


@dataclass(frozen=True)
class Node:
    """Inputs as tensors (None where omitted), outputs as shape and type, attributes.

    version: of the operator set the node belongs to.
    lower_body: lowers a graph attribute's nodes at the current insertion point.
    sources: names of the model's inputs that one input depends on.
    """

    op: str
    name: str
    version: int
    inputs: tuple[Tensor | None, ...]
    output_shapes: tuple[tuple[int, ...], ...]
    output_dtypes: tuple[np.dtype, ...]
    wanted: tuple[bool, ...]
    attributes: dict[str, ir.Attr]
    lower_body: Bodies
    sources: Callable[[int], tuple[str, ...]]

    def input(self, index: int) -> Tensor:
        """A required input."""
        found = self.optional(index)
        if found is None:
            raise self.unsupported(f"input {index} is missing")
        return found

    def optional(self, index: int) -> Tensor | None:
        return self.inputs[index] if index < len(self.inputs) else None

    def known(self, index: int) -> Array | None:
        """The array of an optional input that must be known while compiling."""
        given = self.optional(index)
        if given is None:
            return None
        if not given.is_constant:
            raise DataDependent(
                f"its input {index} must be known while compiling",
                self.sources(index),
                where=self.where,
                hint="make it a constant of the model",
            )
        return given.array()

    @property
    def where(self) -> str:
        """The node in the words of a message."""
        return f"node {self.name} ({self.op})"

    def has(self, name: str) -> bool:
        return name in self.attributes

    def int(self, name: str, default: int = 0) -> int:
        return self.attributes[name].as_int() if self.has(name) else default

    def float(self, name: str, default: float = 0.0) -> float:
        """ONNX stores float attributes, and so their defaults, as f32."""
        given = self.attributes[name].as_float() if self.has(name) else default
        return float(np.float32(given))

    def string(self, name: str, default: str = "") -> str:
        return self.attributes[name].as_string() if self.has(name) else default

    def ints(self, name: str, default: Sequence[int] = ()) -> list[int]:
        found = self.attributes[name].as_ints() if self.has(name) else default
        return list(found)

    def floats(self, name: str, default: Sequence[float] = ()) -> list[float]:
        found = self.attributes[name].as_floats() if self.has(name) else default
        return list(found)

    def strings(self, name: str, default: Sequence[str] = ()) -> list[str]:
        found = self.attributes[name].as_strings() if self.has(name) else default
        return list(found)

    def array(self, name: str) -> Array | None:
        """A tensor attribute."""
        return self.attributes[name].as_tensor().numpy() if self.has(name) else None

    def graph(self, name: str) -> ir.Graph:
        return self.attributes[name].as_graph()

    def invalid(self, reason: str) -> ModelError:
        """Inputs or attributes that are against ONNX's own rules."""
        return ModelError(
            reason,
            where=f"node {self.name} ({self.op})",
            hint="look at the model, and at the sizes given for its dimensions",
        )

    def unsupported(self, reason: str, hint: str = "") -> Unsupported:
        return Unsupported(reason, where=self.where, hint=hint)
