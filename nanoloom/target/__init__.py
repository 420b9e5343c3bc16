"""Targets: facts about CPUs, passed in.  `host.py` alone looks at this machine."""

from __future__ import annotations

from nanoloom.target.facts import Cache, MatrixUnit, Target, VectorUnit
from nanoloom.target.named import TARGETS, by_name

__all__ = [
    "TARGETS",
    "Cache",
    "MatrixUnit",
    "Target",
    "VectorUnit",
    "by_name",
]
