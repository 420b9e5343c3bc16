"""Inputs, outputs and models as ONNX Runtime describes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nanoloom.interface.interface import Interface

NAMES = {"float32": "float", "float64": "double"}  # others are called as numpy's


@dataclass(frozen=True)
class NodeArg:
    """An input or output: shape has names for open dimensions, None without one."""

    name: str
    type: str
    shape: list[int | str | None]

    @classmethod
    def of(cls, side: Interface) -> NodeArg:
        """As nanoloom describes it."""
        if side.holds:
            return cls(side.name, kind_of(side), [])
        unnamed = [f"{side.name}.{axis}" for axis in range(len(side.shape))]
        dims = [
            None if d == own else d for d, own in zip(side.shape, unnamed, strict=True)
        ]
        return cls(side.name, kind_of(side), dims)

    @classmethod
    def of_weight(
        cls, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> NodeArg:
        """An input that a weight is the default of."""
        return cls(name, tensor_kind(dtype), list(shape))


def kind_of(side: Interface) -> str:
    """tensor(float), seq(tensor(int64)), optional(tensor(float))."""
    kind = "tensor(string)" if side.is_text else tensor_kind(side.dtype)
    for word in reversed(side.holds.split()):
        kind = f"{'seq' if word == 'list' else word}({kind})"
    return kind


def tensor_kind(dtype: np.dtype) -> str:
    """tensor(float) of float32."""
    if dtype.kind in "OUS":
        return "tensor(string)"
    return f"tensor({NAMES.get(dtype.name, dtype.name)})"


@dataclass(frozen=True)
class ModelMetadata:
    """What a model says of itself."""

    producer_name: str = ""
    graph_name: str = ""
    domain: str = ""
    description: str = ""
    graph_description: str = ""
    version: int = 0
    custom_metadata_map: dict[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def of(cls, said: Mapping[str, str]) -> ModelMetadata:
        """As nanoloom says it: what it does not know by name are properties."""
        own = ("producer_name", "graph_name", "domain", "description")
        others = {"producer_version", "version", *own}
        return cls(
            **{name: said.get(name, "") for name in own},
            version=int(said.get("version") or 0),
            custom_metadata_map={k: v for k, v in said.items() if k not in others},
        )
