"""What a person calls an operation and its loops: attributes that schedules go by."""

from __future__ import annotations

from collections.abc import Sequence

from nanoloom.ir.mlir import ir

NAME, AXES = "nanoloom.name", "nanoloom.axes"
FACTORS = "nanoloom.factors"  # the numbers of its first operand (known_factors.py)


def write_names(made: ir.Value | None, name: str, axes: Sequence[str]) -> None:
    """Write names into the operation that makes a value, outermost loop first."""
    owner = made.owner if made is not None else None
    if owner is not None and not isinstance(owner, ir.Block):
        owner.attributes[NAME] = ir.StringAttr.get(name)
        owner.attributes[AXES] = ir.ArrayAttr.get([ir.StringAttr.get(a) for a in axes])
