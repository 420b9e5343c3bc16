"""What a person calls an operation and its loops: attributes that schedules go by."""

from __future__ import annotations

from collections.abc import Sequence

from nanoloom.linalg.builder.tensor import Tensor
from nanoloom.mlir import ir

NAME, AXES = "nanoloom.name", "nanoloom.axes"


def write_names(made: Tensor, name: str, axes: Sequence[str]) -> None:
    """Write names into the operation that makes a tensor, outermost loop first."""
    owner = made.value.owner if made.value is not None else None
    if owner is not None and not isinstance(owner, ir.Block):
        owner.attributes[NAME] = ir.StringAttr.get(name)
        owner.attributes[AXES] = ir.ArrayAttr.get([ir.StringAttr.get(a) for a in axes])
