"""What a value of a body is in the lanes of a vector."""

from __future__ import annotations

from dataclasses import dataclass

from nanoloom.ir.mlir import ir


@dataclass(frozen=True)
class Uniform:
    """The same scalar in every lane."""

    value: ir.Value


@dataclass(frozen=True)
class Lane:
    """start + lane number: an index or integer that grows by one a lane."""

    start: ir.Value


@dataclass(frozen=True)
class Vector:
    """One value a lane."""

    value: ir.Value


LaneValue = Uniform | Lane | Vector
